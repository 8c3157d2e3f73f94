// What admins look at and repair.

import kafkajs from "kafkajs";
import { errorOf, offsets, withAdmin, withMember } from "./clients.js";
import { commit } from "./records.js";
import { sorted, until } from "./telling.js";

export async function createTopic(run) {
  await withAdmin(run, async (admin) => {
    const create = () => admin.createTopics({ topics: [{ topic: run.name, numPartitions: 3, replicationFactor: 1 }] });
    await create();
    const { topics } = await admin.fetchTopicMetadata({ topics: [run.name] });
    run.tell("partitions", topics[0].partitions.length);
    run.tell("again", await create());
  });
}

/** It would try again for some seconds: a single try is looked at. */
export async function unknownTopic(run) {
  const once = { retry: { retries: 0 } };
  await withAdmin(run, async (admin) => run.tell("error", await errorOf(() => admin.deleteTopics({ topics: [run.name] }))), once);
}

export async function listGroups(run) {
  await commit(run, 1);
  await withAdmin(run, async (admin) => run.tell("listed", await isListed(admin, run)));
}

async function isListed(admin, run) {
  return (await admin.listGroups()).groups.some((group) => group.groupId === run.name);
}

export async function describeGroup(run) {
  await withAdmin(run, async (admin) => {
    await withMember(run, 2, async () => {
      const group = await withMembers(admin, run, 1);
      run.tell("state", group.state);
      run.tell("members", group.members.length);
      const [{ memberAssignment }] = group.members;
      const { assignment } = kafkajs.AssignerProtocol.MemberAssignment.decode(memberAssignment);
      run.tell("assigned", sorted(assignment[run.name]));
    });
    run.tell("then", (await withMembers(admin, run, 0)).state);
  });
}

async function withMembers(admin, run, count) {
  return until(`a group of ${count}`, async () => {
    const [group] = (await admin.describeGroups([run.name])).groups;
    return group.members.length === count && group;
  });
}

export async function deleteGroup(run) {
  await commit(run, 1);
  await withAdmin(run, async (admin) => {
    const deletion = () => errorOf(() => admin.deleteGroups([run.name]));
    await withMember(run, 1, async () => run.tell("busy", await deletion()));
    run.tell("deleted", await deletion());
    run.tell("listed", await isListed(admin, run));
    run.tell("again", await deletion());
  });
}

export async function listGroupOffsets(run) {
  await commit(run, 3, 7);
  await withAdmin(run, async (admin) => run.tell("offsets", await offsets(admin, run)));
}
