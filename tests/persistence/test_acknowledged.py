"""What was acknowledged holds after a kill with durability ``os``, and after a power loss too with ``fsync``."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.k49_alter_client_quotas import AlterClientQuotasRequest
from kproto_server.cluster.topics import TopicsNotStored
from kproto_server.testing.simulated_disk import Operation
from tests.persistence.disk_broker import DiskBroker
from tests.robustness.changes import (
    BROKER,
    GROUP,
    TOPIC,
    State,
    alter_config,
    broker_configs,
    commit,
    configs,
    create_partitions,
    create_topic,
    create_topics,
    delete_by_name,
    delete_group,
    delete_offset,
    delete_records,
    delete_topic,
    errors_of,
    group_configs,
    join,
    leave,
    new_producer_id,
    produce,
    set_config,
    sync,
    view,
    zookeeper_offset,
)
from tests.security.quota_scripts import entry as quota

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.robustness.changes import Sent

GROUPS = ("g", "h", "members")


def do(broker: DiskBroker, *requests: Sent) -> Any:
    """Send requests one after the other; each succeeds. Return the last response."""
    response: Any = None
    for request, version in requests:
        response = broker.ask(request, version)
        assert not errors_of(response), response
    return response


def joined(broker: DiskBroker) -> Any:
    member = do(broker, join("members", "i"))
    do(broker, sync("members", member, "i", b"assigned"))
    return member


def delete_and_expire(broker: DiskBroker) -> None:
    do(broker, delete_records("t", 5), set_config(TOPIC, "t", "retention.bytes", "300"))
    broker.advance(600_000)


CHANGES: dict[str, Callable[[DiskBroker], object]] = {
    "CreateTopics": lambda broker: do(broker, create_topic("new", 3, retention_ms="7")),
    "DeleteTopics": lambda broker: do(broker, delete_topic("t")),
    "DeleteTopics, and again": lambda broker: do(
        broker, delete_topic("t"), create_topic("t"), produce("t", [b"new"]), delete_topic("t"), create_topic("t")
    ),
    "CreatePartitions": lambda broker: do(broker, create_partitions("t", 4), produce("t", [b"x"], 3)),
    "topic config": lambda broker: do(broker, set_config(TOPIC, "t", "retention.ms", "99")),
    "topic config, deleted": lambda broker: do(broker, set_config(TOPIC, "t", "segment.bytes", None)),
    "config of all brokers": lambda broker: do(broker, set_config(BROKER, "", "log.retention.ms", "98")),
    "config of a broker": lambda broker: do(broker, set_config(BROKER, "1", "message.max.bytes", "9797")),
    "config of a plugin": lambda broker: do(broker, set_config(BROKER, "1", "no.such", "1")),
    "config of a broker, deleted": lambda broker: do(
        broker, set_config(BROKER, "1", "message.max.bytes", "9797"), set_config(BROKER, "1", "message.max.bytes", None)
    ),
    "Produce": lambda broker: do(broker, produce("t", [b"a", b"b"]), produce("t", [b"c"])),
    "DeleteRecords": lambda broker: do(broker, delete_records("t", 5)),
    "DeleteRecords to the end": lambda broker: do(broker, delete_records("t", -1)),
    "DeleteRecords, twice": lambda broker: do(broker, delete_records("t", 3), delete_records("t", 7)),
    "DeleteRecords, and retention": delete_and_expire,
    "OffsetCommit": lambda broker: do(broker, commit("g", {"t": {0: 77}})),
    "OffsetCommit v0": lambda broker: do(broker, commit("g", {"t": {0: 78}}, 0)),
    "OffsetDelete": lambda broker: do(broker, delete_offset("g", "t")),
    "DeleteGroups": lambda broker: do(broker, delete_group("h")),
    "JoinGroup and SyncGroup": joined,
    "LeaveGroup": lambda broker: (joined(broker), do(broker, leave("members", "i"))),
}


def shown(broker: DiskBroker) -> State:
    quotas: State = {("quotas",): dict(broker.broker.state.cluster.client_quotas)}
    return {**view(broker, GROUPS), **broker_configs(broker), **zookeeper_offset(broker, "g", "t"), **quotas}


def prepared(durability: Any, seed: int = 0) -> DiskBroker:
    """Return a broker with a topic of small segments, records, and two groups with offsets."""
    broker = DiskBroker(durability, seed=seed)
    do(broker, create_topic("t", segment_bytes="200"))
    broker.ask(*commit("g", {"t": {0: 1}}))  # the offsets topic does not exist yet
    for number in range(10):
        do(broker, produce("t", [b"%d" % number]))
    broker.broker.state.cluster.ensure_offsets_topic(0)
    do(broker, commit("g", {"t": {0: 3}}), commit("h", {"t": {0: 4}}))
    return broker


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_acknowledged_holds_after_a_kill(change: str) -> None:
    broker = prepared("os")
    before = shown(broker)
    CHANGES[change](broker)
    found = shown(broker)
    assert found != before or "deleted" in change or change == "LeaveGroup"
    for _ in range(2):
        broker.kill()
        assert shown(broker) == found


@pytest.mark.parametrize("loses_all", [True, False], ids=["all unsynced changes", "any of them"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_acknowledged_holds_after_a_power_loss(change: str, loses_all: bool) -> None:
    broker = prepared("fsync")
    CHANGES[change](broker)
    found = shown(broker)
    for _ in range(2):
        broker.lose_power(loses_all=loses_all)
        assert shown(broker) == found
        broker.kill()
        assert shown(broker) == found


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_producer_ids_are_never_used_twice(durability: Any) -> None:
    """Ids begin with the time of the start, in its milliseconds; no process is killed and started again within one."""
    broker = DiskBroker(durability)
    ids = [do(broker, new_producer_id()).producer_id for _ in range(3)]
    broker.kill()
    ids += [do(broker, new_producer_id()).producer_id for _ in range(3)]
    assert len(set(ids)) == 6


def test_a_fetch_waits_for_its_own_partition_only() -> None:
    """Its waiter is called by appends to other partitions neither of its own broker nor of another one."""
    waiters = []
    for seed in range(2):
        broker = DiskBroker("os", seed=seed)
        do(broker, create_topic("t", 2), produce("t", [b"a"], 0), produce("t", [b"a"], 1))
        waiters += [partition.data.waiters for partition in broker.broker.state.cluster.topics["t"].partitions]
    assert len({id(one) for one in waiters}) == 4


def test_records_whose_deletion_cannot_be_saved_are_still_there() -> None:
    """The response has KAFKA_STORAGE_ERROR, and nothing has changed: clients read what a restart has, too."""
    broker = prepared("fsync")
    before = shown(broker)
    broker.disk.fails = lambda operation: "log-start-offset" in operation.path
    response = broker.ask(*delete_records("t", 5))
    assert errors_of(response) == [56]
    broker.disk.fails = lambda operation: False
    assert shown(broker) == before
    do(broker, delete_records("t", 6))
    found = shown(broker)
    broker.lose_power(loses_all=True)
    assert shown(broker) == found


QUOTAS = AlterClientQuotasRequest(entries=(quota({"user": "alice"}, ("producer_byte_rate", 5.0)),), validate_only=False)
METADATA = MetadataRequest(topics=(MetadataRequestTopic(name="new"),), allow_auto_topic_creation=True), 4
TOPIC_CHANGES = {
    "CreateTopics": create_topic("new", 3, retention_ms="7"),
    "CreateTopics twice": create_topics("new", "newer"),
    "Metadata": METADATA,
    "DeleteTopics": delete_topic("t"),
    "DeleteTopics v6": delete_by_name("t"),
    "DeleteTopics of offsets": delete_topic("__consumer_offsets"),
    "CreatePartitions": create_partitions("t", 4),
    "CreatePartitions of offsets": create_partitions("__consumer_offsets", 3),
    "client quotas": (QUOTAS, 1),
    "topic config": set_config(TOPIC, "t", "retention.ms", "99"),
    "topic configs": alter_config(TOPIC, "t", "retention.ms", "99"),
    "config of all brokers": set_config(BROKER, "", "log.retention.ms", "98"),
    "configs of a broker": alter_config(BROKER, "1", "message.max.bytes", "9797"),
}


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("change", TOPIC_CHANGES)
def test_changes_of_topics_that_are_not_saved_are_errors_and_undone(change: str, durability: Any) -> None:
    broker = prepared(durability)
    before = shown(broker)
    broker.disk.fails = lambda operation: "topics.json" in operation.path
    response = broker.ask(*TOPIC_CHANGES[change])
    assert set(errors_of(response)) == {5 if change == "Metadata" else 56}
    assert shown(broker) == before
    broker.disk.fails = lambda operation: False
    broker.kill()
    assert shown(broker) == before
    broker.ask(*TOPIC_CHANGES[change])
    assert (changed := shown(broker)) != before
    broker.kill()
    assert shown(broker) == changed


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("change", ["CreateTopics", "DeleteTopics", "CreatePartitions of offsets", "topic configs"])
def test_whatever_operation_fails_clients_see_what_holds(change: str, durability: Any) -> None:
    for number in itertools.count():
        broker = prepared(durability)
        before = shown(broker)
        broker.disk.fails = nth(number)
        response = broker.ask(*TOPIC_CHANGES[change])
        was_reached = not broker.disk.fails(Operation("sync", ""))
        broker.disk.fails = lambda operation: False
        found = shown(broker) if broker.persistence.log_dir.writer.failure is None else None
        errors = errors_of(response)
        if errors:
            assert set(errors) == {56}
            assert found in (before, None)
        broker.kill()
        after = shown(broker)
        assert found in (after, None)
        if not errors:
            assert after != before
        if not was_reached:
            return


def nth(number: int) -> Callable[[Operation], bool]:
    """Return a function that is True for one operation, by its number."""
    numbers = itertools.count()
    return lambda operation: next(numbers) == number


def test_the_offsets_topic_that_is_not_saved_is_created_by_the_next_request() -> None:
    broker = DiskBroker("os")
    broker.disk.fails = lambda operation: "topics.json" in operation.path
    request = FindCoordinatorRequest(key="g"), 0
    for _ in range(2):
        assert errors_of(broker.ask(*request)) == [15]
    assert "__consumer_offsets" not in broker.broker.state.cluster.topics
    broker.disk.fails = lambda operation: False
    assert errors_of(broker.ask(*request)) == [15]
    do(broker, request, create_topic("t"), commit("g", {"t": {0: 1}}))


def test_a_full_disk_refuses_new_topics_and_takes_deletions() -> None:
    """Deletions make room for the file."""
    broker = prepared("os")
    broker.disk.capacity_bytes = broker.disk.used_bytes
    assert errors_of(broker.ask(*create_topic("new"))) == [56]
    broker.disk.capacity_bytes += 1000
    do(broker, delete_topic("t"))
    found = shown(broker)
    broker.kill()
    assert shown(broker) == found


def test_a_deletion_that_another_change_has_undone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is settled before a deletion is saved may save topics, too, and find a full disk."""
    broker = prepared("os")
    cluster, settle = broker.broker.state.cluster, broker.persistence._settle_all

    def settle_with_a_topic() -> None:
        monkeypatch.undo()
        settle()
        broker.disk.fails = lambda operation: "topics.json" in operation.path
        cluster.create_topic("new", partition_count=1, replication_factor=1, configs={})
        with pytest.raises(TopicsNotStored):
            cluster.save()
        broker.disk.fails = lambda operation: False

    monkeypatch.setattr(broker.persistence, "_settle_all", settle_with_a_topic)
    assert errors_of(broker.ask(*delete_topic("t"))) == [56]
    assert "t" in cluster.topics
    broker.kill()
    assert "t" in broker.broker.state.cluster.topics


def test_a_list_that_lost_all_items_is_empty_after_a_start() -> None:
    """Kafka accepts it. The directory was refused: "log.cleanup.policy cannot be ''"."""
    broker = DiskBroker("os", kafka_version="3.9")
    do(broker, set_config(BROKER, "1", "log.cleanup.policy", ""))
    found = broker_configs(broker.client)
    assert "" in found.values()
    broker.kill()
    assert broker_configs(broker.client) == found


def test_start_offsets_that_a_power_loss_took_in_os_mode_do_not_refuse_the_start() -> None:
    """They are not synced: the file can have its new name and no content."""
    reports = []
    for seed in range(40):
        broker = prepared("os", seed)
        broker.persistence.log_dir.writer.sync_everything()
        do(broker, delete_records("t", 5))
        broker.lose_power(loses_all=False)
        reports += broker.persistence.log_dir.report
    assert any("log-start-offset-checkpoint is damaged" in line for line in reports)


def test_a_member_that_left_is_not_back_after_a_kill() -> None:
    """The response waits for the sync of the group's record, as those of all other changes do."""
    broker = prepared("fsync")
    joined(broker)
    broker.client.send(*leave("members", "i"))
    assert not broker.client.responses, "nothing is synced yet"
    broker.persistence.flush()
    broker.persistence.drain()
    broker.broker.deliver()
    assert not errors_of(broker.client.responses.pop())
    broker.lose_power(loses_all=True)
    assert ("members", "members") not in shown(broker)


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_configs_of_groups_hold_after_a_kill_and_are_undone_if_they_are_not_saved(durability: Any) -> None:
    broker = DiskBroker(durability, kafka_version="4.4.0")
    do(broker, set_config(GROUP, "g", "consumer.session.timeout.ms", "46000"))
    do(broker, set_config(GROUP, "g", "share.auto.offset.reset", "earliest"))
    do(broker, set_config(GROUP, "h", "share.auto.offset.reset", "earliest"))
    do(broker, set_config(GROUP, "h", "share.auto.offset.reset", None))
    broker.disk.fails = lambda operation: "topics.json" in operation.path
    response = broker.ask(*set_config(GROUP, "g", "consumer.session.timeout.ms", "47000"))
    assert errors_of(response) == [56]
    broker.disk.fails = lambda operation: False
    expected = {
        ("config", "g", "consumer.session.timeout.ms"): "46000",
        ("config", "g", "share.auto.offset.reset"): "earliest",
    }
    broker.kill()
    for _ in range(2):
        assert {**group_configs(broker, "g"), **group_configs(broker, "h")} == expected
        if durability == "fsync":
            broker.lose_power(loses_all=True)


def later_saves(first: int) -> Callable[[Operation], bool]:
    """Return a function that is True for the operations on the file of topics from one on, by its number."""
    numbers = itertools.count()
    return lambda operation: "topics.json" in operation.path and next(numbers) >= first


def test_long_values_are_saved_before_the_response_says_so() -> None:
    """The request is handled in slices; the disk fails from one of the saves on, or not at all."""
    name, value = "leader.replication.throttled.replicas", ",".join(["1:1"] * 8000)
    topics = [f"t{index}" for index in range(4)]
    resources = tuple(
        AlterConfigsResource(
            resource_type=TOPIC,
            resource_name=topic,
            configs=(AlterableConfig(name=name, config_operation=0, value=value),),
        )
        for topic in topics
    )
    for first in range(100):
        broker = DiskBroker("os", kafka_version="4.4.0")
        do(broker, *(create_topic(topic) for topic in topics))
        broker.disk.fails = later_saves(first)
        broker.client.send(IncrementalAlterConfigsRequest(resources=resources, validate_only=False), 1)
        while not broker.client.responses:
            broker.advance(1)
        errors = errors_of(broker.client.responses.pop())
        broker.disk.fails = lambda operation: False
        broker.kill()
        kept = [topic for topic in topics if configs(broker, TOPIC, topic, (1,))]
        assert set(errors) <= {56}
        assert errors or kept == topics
        if not errors:
            assert first > 2, "several saves"
            return
    raise AssertionError("the disk always fails")
