// The scenarios of the admin client.

import kafkajs from "kafkajs";
import { errorOf, offsets, withAdmin, withMember } from "./clients.js";
import { commit } from "./records.js";
import { sorted, waitUntil } from "./contract.js";

export async function createTopic(run) {
  await withAdmin(run, async (admin) => {
    const create = () => admin.createTopics({ topics: [{ topic: run.name, numPartitions: 3, replicationFactor: 1 }] });
    await create();
    const { topics } = await admin.fetchTopicMetadata({ topics: [run.name] });
    run.report("partitions", topics[0].partitions.length);
    run.report("again", await create());
  });
}

/** Without retries: the client would repeat the request for some seconds. */
export async function unknownTopic(run) {
  const once = { retry: { retries: 0 } };
  await withAdmin(run, async (admin) => run.report("error", await errorOf(() => admin.deleteTopics({ topics: [run.name] }))), once);
}

export async function listGroups(run) {
  await commit(run, 1);
  await withAdmin(run, async (admin) => run.report("listed", await isListed(admin, run)));
}

async function isListed(admin, run) {
  return (await admin.listGroups()).groups.some((group) => group.groupId === run.name);
}

export async function describeGroup(run) {
  await withAdmin(run, async (admin) => {
    await withMember(run, 2, async () => {
      const group = await withMembers(admin, run, 1);
      run.report("state", group.state);
      run.report("members", group.members.length);
      const [{ memberAssignment }] = group.members;
      const { assignment } = kafkajs.AssignerProtocol.MemberAssignment.decode(memberAssignment);
      run.report("assigned", sorted(assignment[run.name]));
    });
    run.report("then", (await withMembers(admin, run, 0)).state);
  });
}

async function withMembers(admin, run, count) {
  return waitUntil(`a group of ${count}`, async () => {
    const [group] = (await admin.describeGroups([run.name])).groups;
    return group.members.length === count && group;
  });
}

export async function deleteGroup(run) {
  await commit(run, 1);
  await withAdmin(run, async (admin) => {
    const deletion = () => errorOf(() => admin.deleteGroups([run.name]));
    await withMember(run, 1, async () => run.report("busy", await deletion()));
    run.report("deleted", await deletion());
    run.report("listed", await isListed(admin, run));
    run.report("again", await deletion());
  });
}

export async function listGroupOffsets(run) {
  await commit(run, 3, 7);
  await withAdmin(run, async (admin) => run.report("offsets", await offsets(admin, run)));
}
