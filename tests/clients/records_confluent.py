"""The commands of `records_programs.py` with confluent-kafka: COMMAND BOOTSTRAP TOPIC COMPRESSION COUNT."""

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
        raise SystemExit(f"{len(offsets)} of {count} delivered")
    return {"last": max(offsets)}


def consume(bootstrap: str, topic: str, count: int) -> list[list[str]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 0)])
    records_read: list[list[str]] = []
    limit = time.monotonic() + 60
    while len(records_read) < count and time.monotonic() < limit:
        record = consumer.poll(1)
        if record is not None and record.error() is None:
            partition_and_offset = f"{record.partition()}:{record.offset()}"
            records_read.append(
                [partition_and_offset, (record.key() or b"").decode(), (record.value() or b"").decode()]
            )
    consumer.close()
    return sorted(records_read)


if __name__ == "__main__":
    command, bootstrap, topic, compression, count = sys.argv[1:]
    if command == "produce":
        print(json.dumps(produce(bootstrap, topic, compression, int(count))))
    else:
        print(json.dumps(consume(bootstrap, topic, int(count))))
