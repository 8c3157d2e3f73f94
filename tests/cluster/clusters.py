"""Clusters and topics for tests."""

from __future__ import annotations

import random

from kproto_server.cluster.cluster import Cluster, Node, Topic, TopicDefaults
from kproto_server.releases.kafka_version import KafkaVersion


def new_cluster(
    node_count: int = 3, *, kafka_version: str = "latest", defaults: TopicDefaults | None = None, seed: int = 7
) -> Cluster:
    """Return a cluster of live nodes 1 to n; the same seed gives the same choices."""
    nodes = [Node(node_id, "127.0.0.1", 9091 + node_id) for node_id in range(1, node_count + 1)]
    seeded = random.Random(seed)  # noqa: S311 - repeatable, not secret
    return Cluster(nodes, KafkaVersion.named(kafka_version), defaults or TopicDefaults(), seeded.randbytes)


def made(cluster: Cluster, name: str, partition_count: int = 1, replication_factor: int = 1) -> Topic:
    """Create a topic, which must succeed."""
    topic = cluster.create_topic(name, partition_count=partition_count, replication_factor=replication_factor)
    assert isinstance(topic, Topic), topic
    return topic


def placed(cluster: Cluster, name: str, replicas: list[list[int]]) -> Topic:
    """Create a topic with these replicas."""
    topic = cluster.create_topic(name, assignments=list(enumerate(replicas)))
    assert isinstance(topic, Topic), topic
    return topic
