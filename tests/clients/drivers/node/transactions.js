// The scenarios of transactions. kafkajs reads with isolation level read_committed.

import { errorOf, Member, offsets, plainProducer, send, transactional, withAdmin, withMember } from "./clients.js";

const COUNT = 6;

const record = (number) => ({ key: String(number), value: `value ${number}` });

async function copy(run, producer, number) {
  const transaction = await producer.transaction();
  await transaction.send({ topic: run.name, messages: [{ ...record(number), partition: 1 }] });
  const partitions = [{ partition: 0, offset: String(number + 1) }];
  await transaction.sendOffsets({ consumerGroupId: run.name, topics: [{ topic: run.name, partitions }] });
  return transaction;
}

/** The member reads the copies too, and they are among its records. */
export async function exactlyOnce(run) {
  await send(run, COUNT);
  const producer = await transactional(run);
  const member = await Member.started(run);
  for (let number = 0; number < COUNT; number++) {
    await member.takeFrom(0, number);
    if (number % 2) {
      await (await copy(run, producer, number)).abort();
      member.seek(number);
      await member.takeFrom(0, number);
    }
    await (await copy(run, producer, number)).commit();
  }
  await member.close();
  await producer.disconnect();
  await withAdmin(run, async (admin) => run.report("committed", (await offsets(admin, run))[0]));
  const all = await withMember(run, 2, (reader) => reader.take(2 * COUNT), `${run.name}-reads`);
  run.report("copied", all.filter(({ partition }) => partition === 1).map(({ formatted }) => formatted));
}

async function begun(run, number, timeout) {
  const producer = await transactional(run, timeout);
  const transaction = await producer.transaction();
  await transaction.send({ topic: run.name, messages: [{ ...record(number), partition: 0 }] });
  return { producer, transaction };
}

async function reportRead(run) {
  run.report("read", await withMember(run, 1, (member) => member.takeFormatted(1), `${run.name}-reads`));
}

export async function fencedProducer(run) {
  const first = await begun(run, 0);
  const second = await begun(run, 1);
  run.report("error", await errorOf(() => first.transaction.commit()));
  await second.transaction.commit();
  await reportRead(run);
  await first.producer.disconnect();
  await second.producer.disconnect();
}

export async function transactionTimeout(run) {
  const { producer, transaction } = await begun(run, 0, 1000);
  const plain = await plainProducer(run);
  await plain.send({ topic: run.name, messages: [{ ...record(1), partition: 0 }] });
  await plain.disconnect();
  await reportRead(run);
  run.report("error", await errorOf(() => transaction.commit()));
  await producer.disconnect();
}
