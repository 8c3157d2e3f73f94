"""Where kproto decides otherwise than real brokers (server/DEVIATIONS.md)."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k83_initialize_share_group_state import InitializeShareGroupStateRequest, InitializeStateData
from kproto.messages.k83_initialize_share_group_state import PartitionData as InitializeData
from kproto.messages.k85_write_share_group_state import (
    PartitionData,
    StateBatch,
    WriteShareGroupStateRequest,
    WriteStateData,
)
from kproto.records import offsets_topic
from kproto.records.batches import read_batches
from kproto.records.record_batch import RecordBatch
from kproto.records.share_group_records import ShareGroupStatePartitionMetadataKey
from kproto_server.handlers import k85_write_share_group_state
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.share_groups.share_partition import ACCEPT, Acknowledgement, Refused, SharePartition
from kproto_server.testing import InMemoryBroker
from tests.membership.in_memory_transport import InMemoryTransport
from tests.persistence.disk_broker import DiskBroker
from tests.share_groups.sharers import Sharers
from tests.share_groups.test_restarts import DiskTransport


def test_a_partition_that_does_not_exist_has_no_offset() -> None:
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.create()
    share.describe_offsets("t", partitions=[0, 5])
    topic = share.steps[-1].responses["admin"][0]["groups"][0]["topics"][0]
    assert [part["start_offset"] for part in topic["partitions"]] == [-1, -1]


def test_an_acknowledgement_across_the_start_offset_fails_for_its_partition_only() -> None:
    share = SharePartition(5, 5, 200)
    refused = share.acknowledge("A", [Acknowledgement(4, 5, (ACCEPT,))], 0, 1_000)
    assert isinstance(refused, Refused)
    assert refused.error == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize("by_fetch", [True, False])
def test_records_of_a_session_that_ends_are_available_at_once(by_fetch: bool) -> None:
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.create()
    for member in "AB":
        share.join(member)
        share.fetch(member, 0, wait_ms=0)
    share.produce(3)
    share.fetch("A")
    if by_fetch:
        share.fetch("A", epoch=-1)
    else:
        share.acknowledge("A", {}, epoch=-1)
    share.fetch("B")
    (partition,) = share.steps[-1].responses["B"][0]["responses"][0]["partitions"]
    assert partition["acquired_records"] == [{"first_offset": 0, "last_offset": 2, "delivery_count": 2}]


def test_a_partition_whose_state_is_replaced_has_no_records() -> None:
    """4.2.2 and 4.3.1 let a member acquire them (measured)."""
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.create()
    share.join("A")
    share.fetch("A", 0, wait_ms=0)
    share.produce(3)
    share.fetch("A")
    share.heartbeat("A", epoch=-1)
    share.alter_offsets({"t": {0: 0}})
    share.heartbeat("A", epoch=0, topics=["t"])
    share.produce(1)
    share.fetch("A", acks={0: [(0, 2, [ACCEPT])]})
    (partition,) = share.steps[-1].responses["A"][0]["responses"][0]["partitions"]
    assert partition["acknowledge_error_code"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert "acquired_records" not in partition
    share.fetch("A")
    (partition,) = share.steps[-1].responses["A"][0]["responses"][0]["partitions"]
    assert [(one["first_offset"], one["delivery_count"]) for one in partition["acquired_records"]] == [(0, 1)]


def test_the_first_fetch_has_the_records_of_all_partitions() -> None:
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.configure(share_auto_offset_reset="earliest")
    share.create(partitions=2)
    share.produce(3, partition=0)
    share.produce(3, partition=1)
    share.join("A")
    share.fetch("A", 0, 1)
    partitions = share.steps[-1].responses["A"][0]["responses"][0]["partitions"]
    assert [one["acquired_records"][0]["last_offset"] for one in partitions] == [2, 2]


def test_the_end_of_a_connection_ends_its_share_sessions() -> None:
    """On 4.4.0 the first member still has its session (measured)."""
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.create()
    share.join("A")
    for member in ("first", "second"):
        share.fetch("A", 0, epoch=0, wait_ms=0, member_id=member)
    share.fetch("B", 0, epoch=0, wait_ms=0, member_id="first")
    share.disconnect("A")
    found = []
    for member in ("first", "second"):
        share.fetch("C", epoch=1, wait_ms=0, member_id=member)
        found.append(share.steps[-1].responses["C"][0]["error_code"])
    assert found == [0, ErrorCode.SHARE_SESSION_NOT_FOUND]


def test_no_state_of_a_share_group_is_about_to_begin_or_end() -> None:
    """4.4.0 has one more record before the first, and before the last (measured)."""
    share = Sharers(DiskTransport(DiskBroker("os", kafka_version="4.4")), KafkaVersion.named("4.4"), "n")
    share.create()
    share.join("A")
    share.heartbeat("A", epoch=-1)
    share.delete_groups("g")
    batches = read_batches(share._read_all("__consumer_offsets"))
    records = [record for batch in batches if isinstance(batch, RecordBatch) for record in batch.records()]
    read: list[Any] = [offsets_topic.read_offsets_record(record.key, record.value) for record in records]
    found = [one.value for one in read if isinstance(one.key, ShareGroupStatePartitionMetadataKey)]
    topics = [one and (one.initializing_topics, len(one.initialized_topics), one.deleting_topics) for one in found]
    assert topics == [((), 1, ()), ((), 0, ()), None]


def test_a_request_combines_few_state_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write combines all batches of a state: 3000 writes to one of 9000 batches took minutes."""
    monkeypatch.setattr(k85_write_share_group_state, "BATCHES_MAX", 10)
    writer = StateWriter()
    assert writer.write_single(*range(0, 10, 2)) == (0, None)
    assert writer.write_single(10) == (0, None)
    refused = ErrorCode.INVALID_REQUEST, "kproto combines at most 10000 state batches in a request"
    assert writer.write_single(12, times=2) == refused
    assert writer.write_single(*range(20, 30, 2)) == refused


def test_state_batches_have_few_records() -> None:
    """After a write of one batch of three million records, the next ShareFetch took 600 MiB."""
    writer = StateWriter()
    refused = ErrorCode.INVALID_REQUEST, "kproto has state batches of at most 20000 records"
    assert writer.write((0, 20_000)) == refused
    assert writer.write((0, 9_999), (10_000, 19_999)) == (0, None)
    assert writer.write((20_000, 20_000)) == refused


class StateWriter:
    """Writes the state of one share partition."""

    def __init__(self) -> None:
        broker = InMemoryBroker(kafka_version="4.4", topics={"t": 1})
        for name in ("__consumer_offsets", "__share_group_state"):
            assert broker.state.cluster.ensure_internal_topic(name, broker.clock.now_ms())
        self._topic_id, self._pair = broker.state.cluster.topics["t"].topic_id, broker.connect()
        begin = InitializeData(partition=0, state_epoch=0, start_offset=0)
        topics = (InitializeStateData(topic_id=self._topic_id, partitions=(begin,)),)
        self._pair.ask(InitializeShareGroupStateRequest(group_id="g", topics=topics), 0)

    def write_single(self, *offsets: int, times: int = 1) -> tuple[int, str | None]:
        """Write batches of one record each."""
        return self.write(*[(offset, offset) for offset in offsets], times=times)

    def write(self, *bounds: tuple[int, int], times: int = 1) -> tuple[int, str | None]:
        batches = tuple(
            StateBatch(first_offset=first, last_offset=last, delivery_state=2, delivery_count=1)
            for first, last in bounds
        )
        part = PartitionData(partition=0, state_epoch=0, leader_epoch=0, start_offset=0, state_batches=batches)
        written = (WriteStateData(topic_id=self._topic_id, partitions=(part,) * times),)
        response: Any = self._pair.ask(WriteShareGroupStateRequest(group_id="g", topics=written), 0)
        (result,) = response.results[0].partitions
        return result.error_code, result.error_message
