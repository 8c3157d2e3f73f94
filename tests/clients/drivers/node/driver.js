// The scenarios with kafkajs: BOOTSTRAP PREFIX SCENARIO...

import * as admin from "./admin.js";
import { Member } from "./clients.js";
import * as records from "./records.js";
import * as transactions from "./transactions.js";
import { main } from "./contract.js";

async function twoMembers(run) {
  const [first, second] = [await Member.started(run), await Member.started(run)];
  run.report("both", [await first.wait(2), await second.wait(2)]);
  await first.close();
  run.report("alone", await second.wait(4));
  await second.close();
}

await main({
  "create-topic": admin.createTopic,
  "produce-100": records.produce100,
  "consume-and-commit": records.consumeAndCommit,
  "restart-and-continue": records.restartAndContinue,
  "two-members": twoMembers,
  rewind: records.rewind,
  "commit-with-metadata": records.commitWithMetadata,
  "metadata-too-large": records.metadataTooLarge,
  "unknown-topic": admin.unknownTopic,
  lag: records.lag,
  "list-groups": admin.listGroups,
  "describe-group": admin.describeGroup,
  "delete-group": admin.deleteGroup,
  "list-group-offsets": admin.listGroupOffsets,
  "idempotent-produce": records.idempotentProduce,
  "exactly-once": transactions.exactlyOnce,
  "fenced-producer": transactions.fencedProducer,
  "transaction-timeout": transactions.transactionTimeout,
});
