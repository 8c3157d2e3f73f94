"""Topics and partitions that a cluster creates or refuses, with the controller's error texts (BA-90, BA-91).

The replays of recorded brokers cover most cases; these tests cover several brokers and easy mistakes.
"""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.cluster.auto_creation import missing_topic_error
from kproto_server.cluster.cluster import Cluster, Refusal, Topic, TopicDefaults
from kproto_server.cluster.topics import name_problem
from kproto_server.releases.kafka_version import KafkaVersion
from tests.cluster.clusters import made, new_cluster, placed

MODES = pytest.mark.parametrize("kafka_version", ["2.1", "2.8", "3.9-zookeeper", "3.9", "4.4", "latest"])


def refusal(cluster: Cluster, name: str, **arguments: object) -> Refusal:
    found = cluster.create_topic(name, **arguments)  # type: ignore[arg-type]  # each test names its own arguments
    assert isinstance(found, Refusal)
    assert cluster.topic(name) is None
    return found


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "__x"])
def test_names_that_are_allowed(name: str) -> None:
    assert name_problem(name, KafkaVersion.named()) is None


@MODES
@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n"])
def test_names_that_are_not_allowed(kafka_version: str, name: str) -> None:
    cluster = new_cluster(kafka_version=kafka_version)
    assert refusal(cluster, name, partition_count=1, replication_factor=1).error == ErrorCode.INVALID_TOPIC_EXCEPTION


@MODES
def test_a_name_that_differs_in_dots_and_underscores_only_collides(kafka_version: str) -> None:
    cluster = new_cluster(kafka_version=kafka_version)
    made(cluster, "a.b_c")
    found = refusal(cluster, "a_b.c", partition_count=1, replication_factor=1)
    assert found.error == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert found.message is not None
    assert found.message.endswith("a.b_c")


@MODES
def test_an_existing_name_exists_rather_than_collides(kafka_version: str) -> None:
    cluster = new_cluster(kafka_version=kafka_version)
    made(cluster, "a.b")
    found = cluster.create_topic("a.b", partition_count=1, replication_factor=1)
    assert found == Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a.b' already exists.")


@MODES
def test_validate_only_creates_nothing(kafka_version: str) -> None:
    cluster = new_cluster(kafka_version=kafka_version)
    topic = cluster.create_topic("t", partition_count=2, replication_factor=3, validate_only=True)
    assert isinstance(topic, Topic)
    assert cluster.topics == {}
    assert cluster.topic_by_id(topic.topic_id) is None
    assert cluster.add_partitions(made(cluster, "u"), 3, validate_only=True) is None
    assert len(cluster.topics["u"].partitions) == 1


@MODES
def test_too_few_brokers_for_a_topic_are_refused(kafka_version: str) -> None:
    """BA-50, BA-90."""
    found = refusal(new_cluster(2, kafka_version=kafka_version), "t", partition_count=1, replication_factor=3)
    assert found.error == ErrorCode.INVALID_REPLICATION_FACTOR


@MODES
def test_missing_counts_take_the_broker_defaults(kafka_version: str) -> None:
    """BA-90: before 2.4 CreateTopics must have counts; auto-creation never has them."""
    defaults = TopicDefaults(num_partitions=4, replication_factor=2)
    cluster = new_cluster(2, kafka_version=kafka_version, defaults=defaults)
    missing_topic_error(cluster, "auto", allowed_by_request=True, now_ms=0)
    assert (len(cluster.topics["auto"].partitions), cluster.topics["auto"].replication_factor) == (4, 2)
    found = cluster.create_topic("t")
    if cluster.behavior.creates_topics_with_defaults:
        assert isinstance(found, Topic)
        assert (len(found.partitions), found.replication_factor) == (4, 2)
    else:
        assert isinstance(found, Refusal)
        assert found.error == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize(("kafka_version", "is_refused"), [("2.2", False), ("2.3", True), ("3.2", True)])
def test_zookeeper_refuses_gaps_from_2_3_on(kafka_version: str, is_refused: bool) -> None:
    """Measured on 2.2.2 and 2.3.1."""
    found = new_cluster(kafka_version=kafka_version).create_topic("t", assignments=[(0, [1]), (2, [1])])
    if is_refused:
        assert found == (39, "partitions should be a consecutive 0-based integer sequence")
    else:
        assert isinstance(found, Topic)
        assert len(found.partitions) == 2


@pytest.mark.parametrize(
    ("kafka_version", "message"),
    [
        ("2.8", "Topic name is illegal, it can't be longer than 249 characters, topic name: "),
        ("3.0", "Topic name is illegal, it can't be longer than 249 characters, Topic name: "),
        ("3.2", "Topic name is illegal, it can't be longer than 249 characters, Topic name: "),
    ],
)
def test_a_long_name_is_refused_in_the_words_of_the_release(kafka_version: str, message: str) -> None:
    """Measured on 2.8.2, 3.0.2 and 3.2.3."""
    name = "x" * 250
    assert name_problem(name, KafkaVersion.named(kafka_version)) == message + name


def test_an_assignment_places_the_replicas() -> None:
    topic = placed(new_cluster(), "t", [[3, 1], [2, 3]])
    assert [partition.replicas for partition in topic.partitions] == [[3, 1], [2, 3]]


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ([(0, [1, 2]), (1, [3])], "with 1 replica(s), but this is not consistent with previous partitions"),
        ([(0, [1]), (2, [1])], "consecutive 0-based integer sequence"),
        ([(0, [1]), (0, [2])], "multiple manual partition assignments for partition 0"),
        ([(0, [7])], "includes broker 7, but no such broker is registered"),
        ([(0, [2, 2])], "includes the broker 2 more than once"),
        ([(0, [])], "an empty replica list"),
    ],
)
def test_assignments_that_kraft_refuses(assignments: list[tuple[int, list[int]]], message: str) -> None:
    found = refusal(new_cluster(), "t", assignments=assignments)
    assert found.error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert message in (found.message or "")


def test_kraft_refuses_partitions_with_only_stopped_brokers() -> None:
    cluster = new_cluster()
    cluster.stop_node(2)
    assert refusal(cluster, "t", assignments=[(0, [2])]).error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert isinstance(cluster.create_topic("t", assignments=[(0, [2, 3])]), Topic)
    assert cluster.topics["t"].partitions[0].leader == 3


def test_a_zookeeper_topic_may_wait_for_its_broker() -> None:
    """The topic is created on a stopped broker, which leads it after its start."""
    cluster = new_cluster(2, kafka_version="2.8")
    topic = placed(cluster, "t", [[2]])
    cluster.stop_node(2)
    waiting = placed(cluster, "u", [[2]])
    assert [topic.partitions[0].leader, waiting.partitions[0].leader] == [-1, -1]
    cluster.start_node(2)
    assert [topic.partitions[0].leader, waiting.partitions[0].leader] == [2, 2]


@MODES
def test_added_partitions_keep_the_others_and_the_replication_factor(kafka_version: str) -> None:
    cluster = new_cluster(kafka_version=kafka_version)
    topic = made(cluster, "t", 2, 2)
    before = list(topic.partitions)
    assert cluster.add_partitions(topic, 5) is None
    assert topic.partitions[:2] == before
    assert [partition.index for partition in topic.partitions] == [0, 1, 2, 3, 4]
    assert {len(partition.replicas) for partition in topic.partitions} == {2}


@MODES
def test_added_partitions_follow_their_assignment(kafka_version: str) -> None:
    cluster = new_cluster(kafka_version=kafka_version)
    topic = made(cluster, "t", 1, 2)
    assert cluster.add_partitions(topic, 3, [[3, 1], [2, 3]]) is None
    assert [partition.replicas for partition in topic.partitions[1:]] == [[3, 1], [2, 3]]


@MODES
@pytest.mark.parametrize("assignments", [[[1]], [[1, 1]], [[]], [[9, 1]], [[1, 2], [2, 3]], []])
def test_added_partitions_with_a_bad_assignment_are_refused(kafka_version: str, assignments: list[list[int]]) -> None:
    cluster = new_cluster(kafka_version=kafka_version)
    topic = made(cluster, "t", 1, 2)
    found = cluster.add_partitions(topic, 2, assignments)
    assert found is not None
    assert found.error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert len(topic.partitions) == 1


@MODES
@pytest.mark.parametrize("count", [2, 1, 0, -1])
def test_the_partition_count_never_shrinks(kafka_version: str, count: int) -> None:
    cluster = new_cluster(kafka_version=kafka_version)
    topic = made(cluster, "t", 2)
    found = cluster.add_partitions(topic, count)
    assert found is not None
    assert found.error == ErrorCode.INVALID_PARTITIONS


@MODES
@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ({"no.such": "1"}, "Unknown topic config name: no.such"),
        ({"retention.ms": "soon"}, "Invalid value soon for configuration retention.ms"),
        ({"cleanup.policy": "compact", "retention.ms": None}, "Null value not supported"),
    ],
)
def test_bad_configs_are_refused(kafka_version: str, configs: dict[str, str | None], words: str) -> None:
    found = refusal(
        new_cluster(kafka_version=kafka_version), "t", partition_count=1, replication_factor=1, configs=configs
    )
    assert found.message is None or words in found.message
    assert (found.message is None) == (found.error == ErrorCode.UNKNOWN_SERVER_ERROR)


def test_configs_are_stored_as_given() -> None:
    cluster = new_cluster()
    topic = cluster.create_topic("t", configs={"retention.ms": "1000"})
    assert isinstance(topic, Topic)
    assert topic.configs == {"retention.ms": "1000"}


@MODES
def test_no_topic_is_created_without_permission(kafka_version: str) -> None:
    """BA-33: request and broker must both allow it."""
    cluster = new_cluster(kafka_version=kafka_version)
    assert missing_topic_error(cluster, "t", allowed_by_request=False, now_ms=0) == 3
    cluster = new_cluster(kafka_version=kafka_version, defaults=TopicDefaults(auto_create=False))
    assert missing_topic_error(cluster, "t", allowed_by_request=True, now_ms=0) == 3
    assert cluster.topics == {}


@MODES
def test_more_than_ten_thousand_partitions_at_once_are_refused(kafka_version: str) -> None:
    cluster = new_cluster(kafka_version=kafka_version)
    found = refusal(cluster, "t", partition_count=2**31 - 1, replication_factor=1)
    assert found == Refusal(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    topic = made(cluster, "t", partition_count=1, replication_factor=1)
    word = cluster.behavior.added_partitions_adjective
    refused = f"Excessively large number of {word}partitions per request."
    assert cluster.add_partitions(topic, 10_002) == Refusal(ErrorCode.POLICY_VIOLATION, refused)
    assert cluster.add_partitions(topic, 10_001) is None
    assert len(topic.partitions) == 10_001


@pytest.mark.parametrize(
    ("kafka_version", "messages"),
    [
        (
            "0.11",
            [
                "number of partitions must be larger than 0",
                "replication factor must be larger than 0",
                "replication factor: 4 larger than available brokers: 3",
            ],
        ),
        (
            "1.1",
            [
                "Number of partitions must be larger than 0.",
                "Replication factor must be larger than 0.",
                "Replication factor: 4 larger than available brokers: 3.",
            ],
        ),
    ],
)
def test_old_releases_write_no_sentences(kafka_version: str, messages: list[str]) -> None:
    """Measured on 0.11.0.3 and 1.1.1."""
    cluster = new_cluster(kafka_version=kafka_version)
    counts = [(0, 1), (1, 0), (1, 4)]
    refused = [refusal(cluster, "t", partition_count=count, replication_factor=factor) for count, factor in counts]
    assert [one.message for one in refused] == messages
