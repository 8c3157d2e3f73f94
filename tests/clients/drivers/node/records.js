// The scenarios of records and commits.

import { committed, errorOf, Member, offsets, send, withAdmin, withMember } from "./clients.js";

const NOTES = [
  [42, "first: note"],
  [7, '"zweite" Notiz - ü'],
];
const METADATA_MAX_BYTES = 4096;

/** Read with a separate group: kafkajs has no consumers without a group. */
async function readAll(run, partitions, count) {
  return withMember(run, partitions, (member) => member.take(count), `${run.name}-reads`);
}

export async function produce100(run) {
  const acks = await send(run, 100, { partitions: 2 });
  run.report("acknowledged", acks.flat().length);
  run.report("last", acks.map((found) => Math.max(...found)));
  const records = await readAll(run, 2, 100);
  const of = (partition) => records.filter((record) => record.partition === partition).map((record) => record.formatted);
  run.report("read", [of(0), of(1)]);
}

export async function idempotentProduce(run) {
  const [acks] = await send(run, 100, { idempotent: true });
  run.report("acknowledged", acks.length);
  run.report("last", Math.max(...acks));
  run.report("read", (await readAll(run, 1, 100)).map((record) => record.formatted));
}

export async function consumeAndCommit(run) {
  await send(run, 10);
  const [read, commits] = [[], []];
  await withAdmin(run, (admin) =>
    withMember(run, 1, async (member) => {
      for (const offset of [5, 10]) {
        read.push(...(await member.takeFormatted(5)));
        await member.commit(offset);
        commits.push((await offsets(admin, run))[0]);
      }
    }),
  );
  run.report("read", read);
  run.report("committed", commits);
}

export async function restartAndContinue(run) {
  await send(run, 10);
  await withMember(run, 1, async (member) => {
    run.report("first", await member.takeFormatted(4));
    await member.commit(4);
  });
  await withMember(run, 1, async (member) => run.report("second", await member.takeFormatted(6)));
}

export async function rewind(run) {
  await send(run, 10);
  await withMember(run, 1, async (member) => {
    await member.take(10);
    await member.commit(10);
    member.seek(3);
    run.report("after_seek", (await member.takeFormatted(1))[0]);
    await member.commit(2);
    await withAdmin(run, async (admin) => run.report("committed", (await offsets(admin, run))[0]));
  });
  await withMember(run, 1, async (member) => run.report("after_commit", (await member.takeFormatted(1))[0]));
}

export async function lag(run) {
  await send(run, 10);
  await commit(run, 4);
  await withAdmin(run, async (admin) => {
    const [{ low, high }] = await admin.fetchTopicOffsets(run.name);
    const { 0: offset } = await offsets(admin, run);
    run.report("beginning", Number(low));
    run.report("end", Number(high));
    run.report("committed", offset);
    run.report("lag", Number(high) - offset);
  });
}

/** Commit with a member: kafkajs has no commits without one. */
export async function commit(run, ...notes) {
  await withMember(run, notes.length, (member) => member.commit(...notes));
}

export async function commitWithMetadata(run) {
  await withAdmin(run, async (admin) => {
    run.report("before", await committed(admin, run));
    const member = await Member.started(run);
    await member.wait(2);
    await member.commit(...NOTES);
    run.report("committed", await committed(admin, run));
    await member.commit([2, "new"]);
    run.report("replaced", await committed(admin, run));
    await member.close();
  });
}

export async function metadataTooLarge(run) {
  await withAdmin(run, (admin) =>
    withMember(run, 1, async (member) => {
      await member.commit([1, "x".repeat(METADATA_MAX_BYTES)]);
      run.report("error", await errorOf(() => member.commit([2, "x".repeat(METADATA_MAX_BYTES + 1)])));
      const [offset, metadata] = (await committed(admin, run))[0];
      run.report("committed", offset);
      run.report("length", metadata.length);
    }),
  );
}
