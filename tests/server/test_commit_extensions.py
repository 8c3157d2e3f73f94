"""Forwarded and conditional commits: extensions that are off by default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from kproto.codes import ErrorCode
from kproto.declaration import TaggedField
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server import Broker
from kproto_server.connection.commit_extensions import EXPECTED_OFFSET_TAG, FEATURE
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, create_topic, find_coordinator
from tests.waiting import wait_until

ORDERS = TopicPartition("orders", 0)
SETTINGS = {"num.partitions": 2}
THREE = {"default.replication.factor": 3}
MOVES = 5
BILLING = "billing"
V8, V9 = 8, 9
NO_OFFSET = -1
ACCEPTED, MISMATCH, UNTRIED = 0, int(ErrorCode.INVALID_REQUEST), int(ErrorCode.OPERATION_NOT_ATTEMPTED)


def commit_after_each_move(broker: Broker) -> int:
    """Commit with kafka-python while the coordinator moves; return how often it asked a node that was not it."""
    with RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "orders")
        find_coordinator(client, BILLING)
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id=BILLING, enable_auto_commit=False, retry_backoff_ms=10
    )
    with closing(consumer):
        consumer.assign([ORDERS])
        for number in range(MOVES):
            broker.cluster.move_coordinator(group=BILLING)
            consumer.commit({ORDERS: OffsetAndMetadata(number, "", -1)})
            assert broker.groups.committed(BILLING) == {("orders", 0): number}
    return len(broker.requests.where(api="OffsetCommit", error="NOT_COORDINATOR"))


def test_kafka_python_need_not_find_the_coordinator_that_has_moved() -> None:
    with Broker.running(brokers=3, settings=THREE, forward_commits=True) as broker:
        assert commit_after_each_move(broker) == 0


def test_a_real_broker_forwards_nothing() -> None:
    with Broker.running(brokers=3, settings=THREE) as broker:
        assert commit_after_each_move(broker) >= MOVES - 1


@pytest.mark.parametrize("version", [2, 9])
def test_each_node_accepts_a_commit(version: int) -> None:
    with Broker.running(brokers=3, forward_commits=True) as broker:
        with RawClient(broker.bootstrap_servers) as client:
            commit_offset(client)
        for number, address in enumerate(broker.bootstrap_servers.split(",")):
            with RawClient(address) as client:
                for offset in (10 * number, 10 * number + 1):  # the second one would be a cached commit
                    assert commit_offset(client, offset=offset, version=version) == 0
                    assert broker.groups.committed("g") == {("t", 0): offset}


def test_without_a_coordinator_nothing_is_forwarded() -> None:
    with (
        Broker.running(brokers=3, started=1, forward_commits=True) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        assert commit_offset(client) == ErrorCode.NOT_COORDINATOR


# Conditional commits.


@pytest.fixture(params=["memory", "fsync"])
def broker(request: Any, tmp_path: Path) -> Iterator[Broker]:
    data = None if request.param == "memory" else str(tmp_path / "data")
    with Broker.running(settings=SETTINGS, conditional_commits=True, data=data) as running:
        with RawClient(running.bootstrap_servers) as client:
            create_topic(client, "orders")
            wait_until(lambda: find_coordinator(client, BILLING) == 0, "the coordinator")
        yield running


def request_of(offsets: dict[int, tuple[int, int | None]], **fields: Any) -> OffsetCommitRequest:
    """``offsets``: offset and expected offset by partition."""
    partitions = []
    for index, (offset, expected) in offsets.items():
        one = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        tags = () if expected is None else (TaggedField(EXPECTED_OFFSET_TAG, pack(">q", expected)),)
        partitions.append(one.replace(unknown_tagged_fields=tags))
    topic = OffsetCommitRequestTopic(name="orders", partitions=tuple(partitions))
    return OffsetCommitRequest(group_id=BILLING, topics=(topic,), **fields)


def commit(client: RawClient, offsets: dict[int, tuple[int, int | None]], **fields: Any) -> list[int]:
    response = client.ask(request_of(offsets, **fields), V8)
    return [one.error_code for one in response.topics[0].partitions]


def test_a_commit_succeeds_if_the_offset_is_the_expected_one(broker: Broker) -> None:
    with RawClient(broker.bootstrap_servers) as client:
        assert commit(client, {0: (5, 4)}) == [MISMATCH]
        assert commit(client, {0: (5, NO_OFFSET)}) == [ACCEPTED]
        assert commit(client, {0: (6, NO_OFFSET)}) == [MISMATCH]
        assert commit(client, {0: (6, 5)}) == [ACCEPTED]
        assert commit(client, {0: (6, 5)}) == [MISMATCH]
        assert commit(client, {0: (7, None)}) == [ACCEPTED]
    assert broker.groups.committed(BILLING) == {("orders", 0): 7}


def test_a_commit_changes_all_or_nothing(broker: Broker) -> None:
    with RawClient(broker.bootstrap_servers) as client:
        assert commit(client, {0: (5, NO_OFFSET), 1: (5, 3)}) == [UNTRIED, MISMATCH]
        assert broker.groups.committed(BILLING) == {}
        assert commit(client, {0: (5, NO_OFFSET), 1: (5, None)}) == [ACCEPTED, ACCEPTED]
    assert broker.groups.committed(BILLING) == {("orders", 0): 5, ("orders", 1): 5}


def test_of_two_commits_that_expect_the_same_offset_one_succeeds(broker: Broker) -> None:
    """The second one arrives before the first one is synced."""
    with RawClient(broker.bootstrap_servers) as client:
        client.send(*[(request_of({0: (offset, NO_OFFSET)}), V8) for offset in (5, 6, 7)])
        frames = [client.read_frame() for _ in range(3)]
    assert len({len(frame) for frame in frames}) == 1
    assert broker.groups.committed(BILLING) == {("orders", 0): 5}
    assert len(broker.requests.where(api="OffsetCommit", error="INVALID_REQUEST")) == 2


def test_kafka_python_notices_nothing(broker: Broker) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=BILLING, enable_auto_commit=False)
    with closing(consumer):
        consumer.assign([ORDERS])
        for number in range(3):
            consumer.commit({ORDERS: OffsetAndMetadata(number, "", -1)})
    assert broker.groups.committed(BILLING) == {("orders", 0): 2}


def test_a_member_that_is_fenced_gets_that_error(broker: Broker) -> None:
    with RawClient(broker.bootstrap_servers) as client:
        codes = commit(client, {0: (5, 4)}, generation_id_or_member_epoch=1, member_id="m")
    assert codes == [ErrorCode.ILLEGAL_GENERATION]


def test_clients_see_the_feature_while_it_is_on(broker: Broker) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")

    def names(of: Broker, version: int) -> set[str]:
        with RawClient(of.bootstrap_servers) as client:
            return {one.name for one in client.ask(request, version).supported_features}

    assert FEATURE in names(broker, 3)
    assert FEATURE in names(broker, 4)
    with Broker.running() as other:
        assert FEATURE not in names(other, 3)


def test_a_real_broker_ignores_the_expectation() -> None:
    with Broker.running() as other, RawClient(other.bootstrap_servers) as client:
        create_topic(client, "orders")
        find_coordinator(client, BILLING)
        assert commit(client, {0: (5, 4)}) == [ACCEPTED]
