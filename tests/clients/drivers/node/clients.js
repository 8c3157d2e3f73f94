// The kafkajs clients of the scenarios.

import fs from "node:fs";
import kafkajs from "kafkajs";
import { numbered, sorted, waitUntil } from "./contract.js";

const EARLIEST = { fromBeginning: true };

/** The settings for the security of the broker, as `kproto run` gives it to its command. */
function security() {
  const variables = process.env;
  const settings = {};
  if (variables.KAFKA_SSL_CA_LOCATION !== undefined) {
    settings.ssl = { ca: [fs.readFileSync(variables.KAFKA_SSL_CA_LOCATION, "utf-8")] };
  }
  if (variables.KAFKA_SASL_MECHANISM !== undefined) {
    settings.sasl = {
      mechanism: variables.KAFKA_SASL_MECHANISM.toLowerCase(),
      username: variables.KAFKA_SASL_USERNAME,
      password: variables.KAFKA_SASL_PASSWORD,
    };
  }
  return settings;
}

function kafka(run) {
  return new kafkajs.Kafka({
    brokers: [run.bootstrap],
    ...security(),
    logLevel: kafkajs.logLevel.ERROR,
    logCreator: () => ({ log }) => console.error(JSON.stringify(log)),
  });
}

/** Return the error code of a call, 0 if it succeeds. */
export async function errorOf(call) {
  try {
    await call();
  } catch (error) {
    for (let cause = error; cause; cause = cause.cause) {
      const code = cause.groups?.[0].errorCode ?? cause.code;
      if (code !== undefined) {
        return code;
      }
    }
    throw error;
  }
  return 0;
}

export async function withAdmin(run, work, settings = {}) {
  const admin = kafka(run).admin(settings);
  await admin.connect();
  try {
    await work(admin);
  } finally {
    await admin.disconnect();
  }
}

async function connectedProducer(run, settings) {
  const producer = kafka(run).producer({
    allowAutoTopicCreation: false,
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    ...settings,
  });
  await producer.connect();
  return producer;
}

export const plainProducer = (run) => connectedProducer(run, {});

/** Return a producer with the run's name as transactional id. */
export const transactional = (run, transactionTimeout = 60_000) =>
  connectedProducer(run, { transactionalId: run.name, transactionTimeout, idempotent: true, maxInFlightRequests: 1 });

/** Write numbered records to the partitions in turn, one request each; return the acknowledged offsets per partition. */
export async function send(run, count, { partitions = 1, idempotent = false } = {}) {
  const producer = await connectedProducer(run, { idempotent });
  const offsets = Array.from({ length: partitions }, () => []);
  for (const [n, record] of numbered(count).entries()) {
    const partition = n % partitions;
    const [ack] = await producer.send({ topic: run.name, acks: -1, messages: [{ ...record, partition }] });
    offsets[partition].push(Number(ack.baseOffset));
  }
  await producer.disconnect();
  return offsets;
}

/** A consumer of the group that reads in the background, from the start if nothing is committed. */
export class Member {
  #consumer;
  #run;
  #records = [];
  #partitions = [];

  static async started(run, group = run.name) {
    const member = new Member();
    await member.#start(run, group);
    return member;
  }

  async #start(run, groupId) {
    this.#run = run;
    this.#consumer = kafka(run).consumer({
      groupId,
      sessionTimeout: 6000,
      heartbeatInterval: 100,
      maxWaitTimeInMs: 50,
      metadataMaxAge: 500,
      allowAutoTopicCreation: false,
    });
    const { GROUP_JOIN, REBALANCING } = this.#consumer.events;
    this.#consumer.on(REBALANCING, () => (this.#partitions = []));
    this.#consumer.on(GROUP_JOIN, ({ payload }) => (this.#partitions = payload.memberAssignment[run.name] ?? []));
    await this.#consumer.connect();
    await this.#consumer.subscribe({ topics: [run.name], ...EARLIEST });
    await this.#consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        this.#records.push({ partition, offset: Number(message.offset), formatted: `${message.key}=${message.value}` });
      },
    });
  }

  /** Return the assigned partitions once there are this many. */
  async wait(count) {
    return waitUntil(`${count} partitions`, () => this.#partitions.length === count && sorted(this.#partitions));
  }

  /** Return the next records. */
  async take(count) {
    await waitUntil(`${count} records`, () => this.#records.length >= count);
    return this.#records.splice(0, count);
  }

  /** Return the next record of a partition, whose offset is this one; drop the records before it. */
  async takeFrom(partition, offset) {
    const isNext = (record) => record.partition === partition && record.offset === offset;
    const index = await waitUntil(`offset ${offset}`, () => this.#records.findIndex(isNext) + 1);
    return this.#records.splice(0, index)[index - 1];
  }

  async takeFormatted(count) {
    return (await this.take(count)).map((record) => record.formatted);
  }

  seek(offset) {
    this.#records = [];
    this.#consumer.seek({ topic: this.#run.name, partition: 0, offset: String(offset) });
  }

  /** Commit an offset, or an offset with metadata, for partitions 0, 1 ... */
  async commit(...notes) {
    const offsets = notes.map((note, partition) => {
      const [offset, metadata] = [note].flat();
      return { topic: this.#run.name, partition, offset: String(offset), metadata };
    });
    await this.#consumer.commitOffsets(offsets);
  }

  async close() {
    await this.#consumer.disconnect();
  }
}

/** Run the work with a new member of the group that has its partitions. */
export async function withMember(run, partitions, work, group = run.name) {
  const member = await Member.started(run, group);
  try {
    await member.wait(partitions);
    return await work(member);
  } finally {
    await member.close();
  }
}

/** Return [offset, metadata] of each partition with a committed offset. */
export async function committed(admin, run) {
  const [{ partitions }] = await admin.fetchOffsets({ groupId: run.name, topics: [run.name] });
  return Object.fromEntries(
    partitions
      .filter(({ offset }) => offset !== "-1")
      .map(({ partition, offset, metadata }) => [partition, [Number(offset), metadata ?? ""]]),
  );
}

/** Return the committed offset of each partition that has one. */
export async function offsets(admin, run) {
  const found = Object.entries(await committed(admin, run));
  return Object.fromEntries(found.map(([partition, [offset]]) => [partition, offset]));
}
