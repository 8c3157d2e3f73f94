// Which error KafkaJS gets from a secured listener: the cases are JSON in standard input.

import fs from "node:fs";
import kafkajs from "kafkajs";

const CODE = /certificate has expired|does not match certificate|unable to verify|self-signed|alert/;

function settings(one) {
  const ssl = { ca: [fs.readFileSync(one.CA)] };
  if (one.Cert) {
    Object.assign(ssl, { cert: fs.readFileSync(one.Cert), key: fs.readFileSync(one.Key) });
  }
  const found = { brokers: [one.Servers], ssl, retry: { retries: 0 }, logLevel: kafkajs.logLevel.NOTHING };
  if (one.Mechanism === "OAUTHBEARER") {
    found.sasl = { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value: one.Token }) };
  } else if (one.Mechanism) {
    found.sasl = { mechanism: one.Mechanism.toLowerCase(), username: one.User, password: one.Password };
  }
  return found;
}

async function classOf(one) {
  const producer = new kafkajs.Kafka(settings(one)).producer();
  try {
    await producer.connect();
    await producer.send({ topic: "orders", messages: [{ value: "v" }] });
    return "ok";
  } catch (error) {
    let cause = error;
    while (cause.cause) {
      cause = cause.cause;
    }
    return [cause.name, cause.type ?? CODE.exec(cause.message)?.[0] ?? ""].join(" ").trim();
  } finally {
    await producer.disconnect();
  }
}

const cases = JSON.parse(fs.readFileSync(0, "utf-8"));
const found = await Promise.all(cases.map(async (one) => [one.Name, await classOf(one)]));
console.log(JSON.stringify(Object.fromEntries(found)));
