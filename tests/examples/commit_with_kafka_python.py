"""Commit offsets with metadata for two partitions with kafka-python, and print the committed offsets.

    kproto run -- python tests/examples/commit_with_kafka_python.py

KAFKA_BOOTSTRAP_SERVERS names the broker, kproto or a real Kafka.
"""

import os

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata

GROUP, TOPIC = "billing", "orders"
COMMITS = {
    TopicPartition(TOPIC, 0): OffsetAndMetadata(42, "after invoice 1041", -1),
    TopicPartition(TOPIC, 1): OffsetAndMetadata(7, "after invoice 1006", -1),
}


def create_topic(bootstrap_servers: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        admin.create_topics([NewTopic(TOPIC, num_partitions=2, replication_factor=1)])
    except TopicAlreadyExistsError:
        pass
    finally:
        admin.close()


def main() -> None:
    bootstrap_servers = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
    create_topic(bootstrap_servers)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers, group_id=GROUP, enable_auto_commit=False)
    consumer.assign(list(COMMITS))
    consumer.commit(COMMITS)
    for partition in COMMITS:
        found = consumer.committed(partition, metadata=True)
        print(f"{partition.topic}-{partition.partition}: offset {found.offset}, metadata {found.metadata!r}")
    consumer.close()


if __name__ == "__main__":
    main()
