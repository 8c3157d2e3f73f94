// What is written, read and committed.

import { committed, errorOf, Member, offsets, send, withAdmin, withMember } from "./clients.js";

const NOTES = [
  [42, "first: note"],
  [7, '"zweite" Notiz - ü'],
];
const LARGEST = 4096;

/** There are no readers without a group, so it has one of its own. */
async function readAll(run, partitions, count) {
  return withMember(run, partitions, (member) => member.take(count), `${run.name}-reads`);
}

export async function produce100(run) {
  const acks = await send(run, 100, { partitions: 2 });
  run.tell("acknowledged", acks.flat().length);
  run.tell("last", acks.map((found) => Math.max(...found)));
  const records = await readAll(run, 2, 100);
  const of = (partition) => records.filter((record) => record.partition === partition).map((record) => record.shown);
  run.tell("read", [of(0), of(1)]);
}

export async function idempotentProduce(run) {
  const [acks] = await send(run, 100, { idempotent: true });
  run.tell("acknowledged", acks.length);
  run.tell("last", Math.max(...acks));
  run.tell("read", (await readAll(run, 1, 100)).map((record) => record.shown));
}

export async function consumeAndCommit(run) {
  await send(run, 10);
  const [read, commits] = [[], []];
  await withAdmin(run, (admin) =>
    withMember(run, 1, async (member) => {
      for (const offset of [5, 10]) {
        read.push(...(await member.takeShown(5)));
        await member.commit(offset);
        commits.push((await offsets(admin, run))[0]);
      }
    }),
  );
  run.tell("read", read);
  run.tell("committed", commits);
}

export async function restartAndContinue(run) {
  await send(run, 10);
  await withMember(run, 1, async (member) => {
    run.tell("first", await member.takeShown(4));
    await member.commit(4);
  });
  await withMember(run, 1, async (member) => run.tell("second", await member.takeShown(6)));
}

export async function rewind(run) {
  await send(run, 10);
  await withMember(run, 1, async (member) => {
    await member.take(10);
    await member.commit(10);
    member.seek(3);
    run.tell("after_seek", (await member.takeShown(1))[0]);
    await member.commit(2);
    await withAdmin(run, async (admin) => run.tell("committed", (await offsets(admin, run))[0]));
  });
  await withMember(run, 1, async (member) => run.tell("after_commit", (await member.takeShown(1))[0]));
}

export async function lag(run) {
  await send(run, 10);
  await commit(run, 4);
  await withAdmin(run, async (admin) => {
    const [{ low, high }] = await admin.fetchTopicOffsets(run.name);
    const { 0: offset } = await offsets(admin, run);
    run.tell("beginning", Number(low));
    run.tell("end", Number(high));
    run.tell("committed", offset);
    run.tell("lag", Number(high) - offset);
  });
}

/** Only members commit. */
export async function commit(run, ...notes) {
  await withMember(run, notes.length, (member) => member.commit(...notes));
}

export async function commitWithMetadata(run) {
  await withAdmin(run, async (admin) => {
    run.tell("before", await committed(admin, run));
    const member = await Member.started(run);
    await member.wait(2);
    await member.commit(...NOTES);
    run.tell("committed", await committed(admin, run));
    await member.commit([2, "new"]);
    run.tell("replaced", await committed(admin, run));
    await member.close();
  });
}

export async function metadataTooLarge(run) {
  await withAdmin(run, (admin) =>
    withMember(run, 1, async (member) => {
      await member.commit([1, "x".repeat(LARGEST)]);
      run.tell("error", await errorOf(() => member.commit([2, "x".repeat(LARGEST + 1)])));
      const [offset, metadata] = (await committed(admin, run))[0];
      run.tell("committed", offset);
      run.tell("length", metadata.length);
    }),
  );
}
