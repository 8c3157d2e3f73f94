"""Kafka's own tools, of the newest release, print the same against the broker under test and against a real one.

Method: each command runs against both brokers, in one JVM; values that differ between clusters are replaced before the
comparison (tools.ToolOutput.normalized). Each test has its own topics and groups, the same on both brokers.
"""

from collections.abc import Iterator

import pytest

from tests.clients.tools import GROUPS, OFFSETS, TOPICS, VERSIONS, Pair, rows, running_tools
from tests.oracle.cluster import NEWEST

pytestmark = pytest.mark.oracle

GROUP_HEADER = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"


@pytest.fixture(scope="module")
def pair(tested_and_real: tuple[str, str]) -> Iterator[Pair]:
    with running_tools(NEWEST) as tools:
        yield Pair(tools, *tested_and_real)


def test_broker_api_versions_are_those_of_the_release(pair: Pair) -> None:
    printed = pair.same(VERSIONS)

    assert "OffsetCommit(8): 2 to 10" in printed.out


def test_a_topic_is_created_once(pair: Pair) -> None:
    create = ("--create", "--topic", "created-once", "--partitions", "2")

    assert pair.same(TOPICS, *create).out == "Created topic created-once.\n"
    pair.wait_topic("created-once", 2)
    assert pair.same(TOPICS, *create).exit_code == 1
    assert pair.same(TOPICS, *create, "--if-not-exists").exit_code == 0


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--topic", "no spaces"], "Topic name is invalid"),
        (["--topic", "n" * 250], "Topic name is invalid"),
        (["--topic", "."], "Topic name is invalid"),
        (["--topic", "refused", "--replication-factor", "3"], "replication factor of 3 cannot be reached"),
        (["--topic", "refused", "--partitions", "0"], "partitions must be greater"),
        (["--topic", "refused", "--config", "no.such.config=1"], "no.such.config"),
        (["--topic", "refused", "--config", "retention.ms=soon"], "retention.ms"),
        (["--topic", "refused", "--config", "retention.ms=-2"], "retention.ms"),
        (["--topic", "refused", "--config", "cleanup.policy=shred"], "cleanup.policy"),
        (["--topic", "refused", "--replica-assignment", "7"], "7"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_invalid_topics_have_the_same_error(pair: Pair, flags: list[str], error: str) -> None:
    printed = pair.same(TOPICS, "--create", *flags)

    assert printed.exit_code == 1
    assert error in printed.out


def test_a_colliding_name_has_the_same_error(pair: Pair) -> None:
    pair.create_topic("colliding.name", 1)

    assert "collides with" in pair.same(TOPICS, "--create", "--topic", "colliding_name").out


def test_topics_are_described_with_their_configs(pair: Pair) -> None:
    configs = ("--config", "cleanup.policy=compact", "--config", "retention.ms=1000")
    pair.same(TOPICS, "--create", "--topic", "described", "--partitions", "3", *configs)
    pair.wait_topic("described", 3)
    pair.create_topic("described-plain", 1)

    one = pair.same(TOPICS, "--describe", "--topic", "described")
    assert "cleanup.policy=compact,retention.ms=1000" in one.out
    assert "Partition: 2\tLeader: NODE\tReplicas: NODE\tIsr: NODE" in one.out
    pair.same(TOPICS, "--describe", "--exclude-internal")
    pair.same(TOPICS, "--describe", "--topic", "described.*")
    pair.same(TOPICS, "--describe", "--topics-with-overrides", "--exclude-internal")
    for flag in ("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"):
        assert pair.same(TOPICS, "--describe", flag).out == ""
    assert "described" in pair.same(TOPICS, "--describe", "--at-min-isr-partitions", "--exclude-internal").out


def test_the_offsets_topic_is_described(pair: Pair) -> None:
    pair.commit("makes-the-offsets-topic", pair.create_topic("for-the-offsets-topic", 1), {0: 0})

    printed = pair.same(TOPICS, "--describe", "--topic", "__consumer_offsets")

    assert "PartitionCount: 50" in printed.out
    assert "cleanup.policy=compact" in printed.out


def test_an_unknown_topic_has_the_same_error(pair: Pair) -> None:
    unknown = ("--topic", "unknown-topic")

    assert "does not exist as expected" in pair.same(TOPICS, "--describe", *unknown).out
    assert pair.same(TOPICS, "--describe", *unknown, "--if-exists").exit_code == 0
    assert pair.same(TOPICS, "--alter", *unknown, "--partitions", "2").exit_code == 1
    assert pair.same(TOPICS, "--delete", *unknown).exit_code == 1
    assert pair.same(TOPICS, "--delete", *unknown, "--if-exists").exit_code == 0


def test_partitions_are_added_but_not_removed(pair: Pair) -> None:
    pair.create_topic("growing", 2)

    assert pair.same(TOPICS, "--alter", "--topic", "growing", "--partitions", "4").exit_code == 0
    pair.wait_topic("growing", 4)
    assert "already has 4" in pair.same(TOPICS, "--alter", "--topic", "growing", "--partitions", "4").out
    assert "would not be an increase" in pair.same(TOPICS, "--alter", "--topic", "growing", "--partitions", "3").out
    assert "PartitionCount: 4" in pair.same(TOPICS, "--describe", "--topic", "growing").out


def test_topics_are_listed_and_deleted(pair: Pair) -> None:
    pair.create_topic("deleted-soon", 2)

    assert "deleted-soon" in pair.same(TOPICS, "--list", "--exclude-internal").out.splitlines()
    assert pair.same(TOPICS, "--delete", "--topic", "deleted-soon").exit_code == 0
    pair.wait_topic("deleted-soon", 0)
    assert "deleted-soon" not in pair.same(TOPICS, "--list", "--exclude-internal").out.splitlines()
    assert pair.same(TOPICS, "--delete", "--topic", "deleted-soon").exit_code == 1


def test_groups_are_listed_with_state_and_type(pair: Pair) -> None:
    topic = pair.create_topic("for-lists", 1)
    pair.commit("listed-1", topic, {0: 0})
    pair.commit("listed-2", topic, {0: 0})

    assert "listed-1" in rows(pair.same(GROUPS, "--list", unordered=True).out)
    for flags in (["--state"], ["--state", "empty"], ["--state", "Empty,Stable"]):
        assert "listed-1 Empty" in rows(pair.same(GROUPS, "--list", *flags, unordered=True).out)
    for flags in (["--type"], ["--type", "classic"], ["--type", "Consumer,Classic"]):
        assert "listed-2 Classic" in rows(pair.same(GROUPS, "--list", *flags, unordered=True).out)
    assert "listed-1 Classic Empty" in rows(pair.same(GROUPS, "--list", "--state", "--type", unordered=True).out)
    assert "listed-1" not in pair.same(GROUPS, "--list", "--state", "stable").out
    assert "listed-1" not in pair.same(GROUPS, "--list", "--type", "consumer").out
    assert pair.same(GROUPS, "--list", "--state", "asleep").exit_code == 1


def test_a_group_is_described_with_its_offsets(pair: Pair) -> None:
    group = pair.commit("described", pair.create_topic("for-offsets", 3), {0: 0, 2: 17})

    offsets = pair.same(GROUPS, "--describe", "--group", group)
    assert rows(offsets.out) == [
        GROUP_HEADER,
        "described for-offsets 0 0 0 0 - - -",
        "described for-offsets 2 17 0 -17 - - -",
    ]
    assert offsets.err == "\nConsumer group 'described' has no active members."
    assert pair.same(GROUPS, "--describe", "--group", group, "--offsets") == offsets
    assert pair.same(GROUPS, "--describe", "--group", group, "--offsets", "--verbose").exit_code == 0
    assert "Empty 0" in rows(pair.same(GROUPS, "--describe", "--group", group, "--state").out)[1]
    pair.same(GROUPS, "--describe", "--group", group, "--state", "--verbose")
    pair.same(GROUPS, "--describe", "--group", group, "--members")
    pair.same(GROUPS, "--describe", "--group", group, "--members", "--verbose")


def test_all_groups_are_described(pair: Pair) -> None:
    group = pair.commit("one-of-all", pair.create_topic("for-all", 1), {0: 4})

    described = pair.same(GROUPS, "--describe", "--all-groups", unordered=True)
    assert f"{group} for-all 0 4 0 -4 - - -" in rows(described.out)
    pair.same(GROUPS, "--describe", "--all-groups", "--state", unordered=True)
    pair.same(GROUPS, "--describe", "--all-groups", "--members", unordered=True)


def test_an_unknown_group_has_the_same_error(pair: Pair) -> None:
    topic = pair.create_topic("for-an-unknown-group", 1)
    unknown = ("--group", "unknown-group")

    assert "Group unknown-group not found." in pair.same(GROUPS, "--describe", *unknown).out
    for flags in (["--state"], ["--members"]):
        pair.same(GROUPS, "--describe", *unknown, *flags)
    assert "group id does not exist" in pair.same(GROUPS, "--delete", *unknown).out
    printed = pair.same(GROUPS, "--delete-offsets", *unknown, "--topic", topic)
    assert "The group id does not exist." in printed.out


def test_offsets_are_deleted(pair: Pair) -> None:
    topic = pair.create_topic("for-deletes", 3)
    group = pair.commit("deleting", topic, {0: 1, 1: 2, 2: 3})
    delete = ("--delete-offsets", "--group", group, "--topic")

    assert "for-deletes 1 Successful" in rows(pair.same(GROUPS, *delete, f"{topic}:1").out)
    assert rows(pair.same(GROUPS, "--describe", "--group", group).out)[1:] == [
        "deleting for-deletes 0 1 0 -1 - - -",
        "deleting for-deletes 2 3 0 -3 - - -",
    ]
    pair.same(GROUPS, *delete, f"{topic}:1")
    pair.same(GROUPS, *delete, "a-topic-that-is-not")
    pair.same(GROUPS, *delete, f"{topic}:9")
    pair.same(GROUPS, *delete, topic)
    pair.same(GROUPS, "--describe", "--group", group)


def test_groups_are_deleted(pair: Pair) -> None:
    topic = pair.create_topic("for-group-deletes", 1)
    for group in ("going-1", "going-2"):
        pair.commit(group, topic, {0: 1})

    assert pair.same(GROUPS, "--delete", "--group", "going-1").exit_code == 0
    assert "could not be deleted" in pair.same(GROUPS, "--delete", "--group", "going-1").out
    pair.same(GROUPS, "--delete", "--group", "going-1", "--group", "going-2")
    assert not {"going-1", "going-2"} & set(rows(pair.same(GROUPS, "--list", unordered=True).out))


def test_a_reset_creates_a_group(pair: Pair) -> None:
    topic = pair.create_topic("for-a-new-group", 2)
    reset = ("--reset-offsets", "--group", "made-by-reset", "--to-earliest", "--execute", "--topic")

    pair.same(GROUPS, *reset, f"{topic}:1")

    described = pair.same(GROUPS, "--describe", "--group", "made-by-reset")
    assert rows(described.out)[1:] == ["made-by-reset for-a-new-group 1 0 0 0 - - -"]
    assert pair.same(GROUPS, *reset, "a-topic-that-is-not").out != ""
    assert pair.same(GROUPS, *reset, f"{topic}:9").out != ""


@pytest.mark.parametrize(
    "time",
    ["-1", "latest", "-2", "earliest", "-3", "max-timestamp", "-4", "earliest-local", "-5", "latest-tiered", "1000"],
)
def test_offsets_of_an_empty_topic_are_shown_for_each_time(pair: Pair, time: str) -> None:
    pair.create_topic(f"at.{time}", 2)

    printed = pair.same(OFFSETS, "--topic", f"at.{time}", "--time", time)

    zero = time not in ("-3", "max-timestamp", "-5", "latest-tiered", "1000")
    assert rows(printed.out) == ([f"at.{time}:0:0", f"at.{time}:1:0"] if zero else [])


def test_offsets_are_shown_for_chosen_partitions(pair: Pair) -> None:
    topic = pair.create_topic("shown", 4)

    assert rows(pair.same(OFFSETS, "--topic", topic, "--partitions", "1,3").out) == ["shown:1:0", "shown:3:0"]
    assert rows(pair.same(OFFSETS, "--topic-partitions", f"{topic}:1-3").out) == ["shown:1:0", "shown:2:0"]
    assert rows(pair.same(OFFSETS, "--topic-partitions", "sho.*:2").out) == ["shown:2:0"]
    assert pair.same(OFFSETS, "--topic", "not-there").exit_code == 1
    assert "shown:0:0" in rows(pair.same(OFFSETS, "--exclude-internal-topics").out)
