"""The verbs of `programs.py` with confluent-kafka: VERB BOOTSTRAP GROUP TOPIC [PARTITION:OFFSET:METADATA]..."""

import json
import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition


def fetch(consumer: Consumer, topic: str) -> dict[str, object]:
    found = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], timeout=30)
    return {str(p.partition): [p.offset, p.metadata] for p in found if p.offset >= 0}


def poll(consumer: Consumer, topic: str) -> dict[str, object]:
    """The end of each partition, which comes as an event, tells the position."""
    consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
    positions: dict[str, object] = {}
    for _ in range(2):
        message = consumer.poll(30)
        end = message.error() if message is not None else None
        if message is None or end is None or end.code() != KafkaError._PARTITION_EOF:
            raise SystemExit(f"no end of a partition, but {end or message}")
        positions[str(message.partition())] = message.offset()
    return positions


def errors_of_commit(consumer: Consumer, commits: list[TopicPartition]) -> list[str]:
    try:
        committed = consumer.commit(offsets=commits, asynchronous=False)
    except KafkaException as error:
        return [error.args[0].name()]
    return [p.error.name() for p in committed if p.error is not None]


def main(verb: str, bootstrap: str, group: str, topic: str, *offsets: str) -> dict[str, object]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    try:
        if verb == "fetch":
            return fetch(consumer, topic)
        if verb == "poll":
            return poll(consumer, topic)
        parts = [text.split(":", 2) for text in offsets]
        errors = errors_of_commit(consumer, [TopicPartition(topic, int(p), int(o), m) for p, o, m in parts])
        if verb == "unknown":
            return {"error": errors[0] if errors else None}
        if errors:
            raise SystemExit(f"commit failed: {errors}")
        return {}
    finally:
        consumer.close()


print(json.dumps(main(*sys.argv[1:])))
