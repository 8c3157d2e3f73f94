"""KIP-115: the offsets topic is created when first needed, with the configured replication factor or not at all."""

from __future__ import annotations

import os

import pytest

from kproto_server.cluster.cluster import Cluster, Node, TopicDefaults
from kproto_server.configuration.settings import Settings
from kproto_server.releases.kafka_version import KafkaVersion
from tests.cluster.clusters import made, new_cluster

ENFORCING = ["0.11", "2.1", "2.8", "3.9-zookeeper", "3.9", "4.4", "latest"]
CLAMPING = ["0.8.2", "0.9", "0.10", "0.10.2"]
ZOOKEEPER = ["0.11", "2.1", "2.8", "3.9-zookeeper"]
KRAFT = ["3.9", "4.4", "latest"]

OFFSETS = "__consumer_offsets"


@pytest.mark.parametrize("kafka_version", ENFORCING)
def test_the_topic_is_not_created_with_too_few_brokers(kafka_version: str) -> None:
    """BA-50."""
    cluster = new_cluster(2, kafka_version=kafka_version)
    assert not cluster.ensure_offsets_topic(0)
    assert cluster.topic(OFFSETS) is None
    assert cluster.coordinator_of("g") is None


@pytest.mark.parametrize("kafka_version", ENFORCING)
def test_the_topic_is_created_as_soon_as_there_are_enough_brokers(kafka_version: str) -> None:
    """BA-53: without a restart, with the configured number of partitions."""
    cluster = new_cluster(2, kafka_version=kafka_version, defaults=TopicDefaults(offsets_num_partitions=5))
    assert not cluster.ensure_offsets_topic(0)
    cluster.add_node(Node(3, "127.0.0.1", 9999))
    assert cluster.ensure_offsets_topic(1_000)
    topic = cluster.topics[OFFSETS]
    assert (len(topic.partitions), topic.replication_factor, topic.created_ms) == (5, 3, 1_000)
    assert topic.configs["cleanup.policy"] == "compact"
    assert topic.internal
    assert cluster.coordinator_of("g") is not None


@pytest.mark.parametrize("kafka_version", CLAMPING)
def test_before_0_11_the_topic_has_as_many_replicas_as_there_are_brokers(kafka_version: str) -> None:
    """BA-50."""
    cluster = new_cluster(2, kafka_version=kafka_version)
    assert cluster.ensure_offsets_topic(0)
    assert cluster.topics[OFFSETS].replication_factor == 2


@pytest.mark.parametrize("kafka_version", ZOOKEEPER)
def test_a_stopped_broker_does_not_count_with_zookeeper(kafka_version: str) -> None:
    """BA-52."""
    cluster = new_cluster(3, kafka_version=kafka_version)
    cluster.stop_node(3)
    assert not cluster.ensure_offsets_topic(0)


@pytest.mark.parametrize("kafka_version", KRAFT)
def test_a_stopped_broker_counts_with_kraft(kafka_version: str) -> None:
    """BA-52: the broker is registered."""
    cluster = new_cluster(3, kafka_version=kafka_version)
    cluster.stop_node(3)
    assert cluster.ensure_offsets_topic(0)
    assert cluster.topics[OFFSETS].replication_factor == 3


@pytest.mark.parametrize("kafka_version", KRAFT)
def test_a_broker_that_was_never_up_does_not_count(kafka_version: str) -> None:
    cluster = new_cluster(2, kafka_version=kafka_version)
    cluster.add_node(Node(3, "127.0.0.1", 9999, alive=False))
    assert not cluster.ensure_offsets_topic(0)
    cluster.start_node(3)
    assert cluster.ensure_offsets_topic(0)


@pytest.mark.parametrize("kafka_version", ["2.1", "4.4"])
def test_the_topic_is_not_created_while_all_brokers_are_down(kafka_version: str) -> None:
    """BA-52: at least one broker must be up."""
    cluster = new_cluster(3, kafka_version=kafka_version)
    for node_id in (1, 2, 3):
        cluster.stop_node(node_id)
    assert not cluster.ensure_offsets_topic(0)


@pytest.mark.parametrize("kafka_version", ENFORCING)
def test_the_transaction_topic_has_its_own_replication_factor(kafka_version: str) -> None:
    """BA-51."""
    defaults = TopicDefaults(offsets_replication_factor=1, transaction_replication_factor=2)
    cluster = new_cluster(1, kafka_version=kafka_version, defaults=defaults)
    assert cluster.ensure_offsets_topic(0)
    assert not cluster.ensure_internal_topic("__transaction_state", 0)
    cluster.add_node(Node(2, "127.0.0.1", 9999))
    assert cluster.ensure_internal_topic("__transaction_state", 0)
    assert cluster.topics["__transaction_state"].replication_factor == 2
    assert cluster.transaction_coordinator_of("x") is not None


@pytest.mark.parametrize(
    ("node_count", "given", "expected"), [(1, None, 1), (2, None, 3), (3, None, 3), (1, "3", 3), (3, "1", 1)]
)
def test_the_effective_replication_factor(node_count: int, given: str | None, expected: int) -> None:
    """BA-54: 1 for a single broker without a setting; otherwise the setting, or Kafka's 3."""
    settings = Settings.from_mapping({} if given is None else {"offsets.topic.replication.factor": given})
    addresses = [("127.0.0.1", 9092 + index) for index in range(node_count)]
    cluster = Cluster.of(addresses, kafka_version=KafkaVersion.named(), settings=settings, random_bytes=os.urandom)
    assert cluster.defaults.offsets_replication_factor == expected


def test_the_leader_of_its_partition_coordinates_a_group() -> None:
    """BA-44; java_hash("g") is 103: partition 3 of 50."""
    cluster = new_cluster(3, defaults=TopicDefaults(offsets_replication_factor=3))
    assert cluster.ensure_offsets_topic(0)
    partition = cluster.topics[OFFSETS].partitions[3]
    first = cluster.coordinator_of("g")
    assert first is not None
    assert first.node_id == partition.leader
    cluster.stop_node(first.node_id)
    second = cluster.coordinator_of("g")
    assert second is not None
    assert second.node_id == partition.leader != first.node_id
    for node_id in (1, 2, 3):
        cluster.stop_node(node_id)
    assert cluster.coordinator_of("g") is None


def test_reset_deletes_topics_but_not_the_internal_ones() -> None:
    cluster = new_cluster(1, defaults=TopicDefaults(offsets_replication_factor=1))
    assert cluster.ensure_offsets_topic(0)
    topic = made(cluster, "t")
    before = cluster.cluster_id
    cluster.reset()
    assert list(cluster.topics) == [OFFSETS]
    assert cluster.topic_by_id(topic.topic_id) is None
    assert cluster.coordinator_of("g") is not None
    assert cluster.cluster_id == before


def test_a_recreated_topic_has_another_id() -> None:
    cluster = new_cluster(1)
    first = made(cluster, "t")
    cluster.delete_topic("t")
    second = made(cluster, "t")
    assert first.topic_id != second.topic_id
    assert cluster.topic_by_id(first.topic_id) is None
    assert cluster.topic_by_id(second.topic_id) is second


@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize(("given", "name"), [(1, "__transaction_state"), (2, "__share_group_state"), (None, OFFSETS)])
def test_topics_of_state_have_their_own_in_sync_replicas(factor: int, given: int | None, name: str) -> None:
    """The setting of the topic counts; without it 2, but no more than there are replicas."""
    settings = {
        "offsets.topic.replication.factor": str(factor),
        "transaction.state.log.replication.factor": str(factor),
        "share.coordinator.state.topic.replication.factor": str(factor),
    }
    addresses = [("127.0.0.1", 9092 + index) for index in range(3)]
    found = []
    for own in ({}, {"transaction.state.log.min.isr": "1", "share.coordinator.state.topic.min.isr": "2"}):
        cluster = Cluster.of(
            addresses,
            kafka_version=KafkaVersion.named("4.4"),
            settings=Settings.from_mapping(settings | own),
            random_bytes=os.urandom,
        )
        assert cluster.ensure_internal_topic(name, 0)
        found.append(cluster.topics[name].configs.get("min.insync.replicas"))
    unset = None if given is None else str(min(2, factor))
    assert found == [unset, unset if given is None else str(given)]
