"""The verbs of `programs.py` with kafka-python: VERB BOOTSTRAP GROUP TOPIC [PARTITION:OFFSET:METADATA]..."""

import json
import sys

from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata


def fetch(consumer: KafkaConsumer, topic: str) -> dict[str, object]:
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    consumer.assign(partitions)
    found = {p.partition: consumer.committed(p, metadata=True) for p in partitions}
    return {str(p): [c.offset, c.metadata] for p, c in found.items() if c is not None}


def poll(consumer: KafkaConsumer, topic: str) -> dict[str, object]:
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    consumer.assign(partitions)
    positions = {str(p.partition): consumer.position(p) for p in partitions}
    if consumer.poll(timeout_ms=300):
        raise SystemExit("records in an empty topic")
    return positions


def unknown(consumer: KafkaConsumer, commits: dict[TopicPartition, OffsetAndMetadata]) -> dict[str, object]:
    """commit() would try again until it times out, so a single try is looked at.

    commit_async does not wait until the coordinator is known, committed() does.
    """
    for partition in commits:
        consumer.committed(partition)
    future = consumer.commit_async(commits)
    for _ in range(100):
        if future.is_done:
            return {"error": type(future.exception).__name__, "message": str(future.exception)}
        consumer.poll(timeout_ms=100)
    raise SystemExit("no answer to the commit")


def main(verb: str, bootstrap: str, group: str, topic: str, *offsets: str) -> dict[str, object]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
        allow_auto_create_topics=False,
    )
    commits = {
        TopicPartition(topic, int(partition)): OffsetAndMetadata(int(offset), metadata, -1)
        for partition, offset, metadata in (text.split(":", 2) for text in offsets)
    }
    try:
        if verb == "fetch":
            return fetch(consumer, topic)
        if verb == "poll":
            return poll(consumer, topic)
        if verb == "unknown":
            return unknown(consumer, commits)
        consumer.assign(list(commits))
        consumer.commit(commits)
        return {}
    finally:
        consumer.close()


print(json.dumps(main(*sys.argv[1:])))
