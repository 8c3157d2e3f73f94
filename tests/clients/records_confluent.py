"""The verbs of `records_programs.py` with confluent-kafka (librdkafka): VERB BOOTSTRAP TOPIC COMPRESSION COUNT."""

import json
import sys
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition


def produce(bootstrap: str, topic: str, compression: str, count: int) -> dict[str, int]:
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": compression}
    producer = Producer(settings)
    offsets: list[int] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            raise SystemExit(str(error))
        offsets.append(message.offset())

    for n in range(count):
        producer.produce(topic, b"value %d" % n, b"%d" % n, n % 2, on_delivery=delivered)
    producer.flush(30)
    if len(offsets) != count:
        raise SystemExit(f"{len(offsets)} of {count} were delivered")
    return {"last": max(offsets)}


def consume(bootstrap: str, topic: str, count: int) -> list[list[str]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 0)])
    found: list[list[str]] = []
    limit = time.monotonic() + 60
    while len(found) < count and time.monotonic() < limit:
        record = consumer.poll(1)
        if record is not None and record.error() is None:
            place = f"{record.partition()}:{record.offset()}"
            found.append([place, (record.key() or b"").decode(), (record.value() or b"").decode()])
    consumer.close()
    return sorted(found)


if __name__ == "__main__":
    verb, bootstrap, topic, compression, count = sys.argv[1:]
    if verb == "produce":
        print(json.dumps(produce(bootstrap, topic, compression, int(count))))
    else:
        print(json.dumps(consume(bootstrap, topic, int(count))))
