"""Batches that cannot be read: without the package of their compression, or in a log of another program."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.records import compression
from kproto.records.compression import Compression, compress
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.partition_log import validation
from kproto_server.partition_log.memory_compaction import compaction
from kproto_server.partition_log.partition_data import PartitionData
from tests.coordinator.broker_state import ask, new_state
from tests.partition_log.conversation_chapters import T0, batch
from tests.partition_log.conversation_contents import contents, record, sealed, sized

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

UNKNOWN_SERVER_ERROR, INVALID_RECORD = -1, 87


def state_with(encoded: bytes) -> BrokerState:
    """Return a broker with a batch that no Produce has checked."""
    state = new_state("3.9")
    partition = state.cluster.topics["t"].partition(0)
    assert partition is not None
    partition.make_data().append(encoded, 1, T0, 0)
    return state


def produced(state: BrokerState, encoded: bytes) -> int:
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=encoded),))
    response = ask(state, ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), 9)
    return int(response.responses[0].partition_responses[0].error_code)


def fetched(state: BrokerState, version: int) -> Any:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="t", partitions=(partition,))
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=(topic,))
    return ask(state, request, version).responses[0].partitions[0]


def offset_at(state: BrokerState, timestamp: int) -> Any:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name="t", partitions=(asked,))
    return ask(state, ListOffsetsRequest(replica_id=-1, topics=(topic,)), 7).topics[0].partitions[0]


@pytest.mark.parametrize("kind", ["bytes behind", "fewer records", "size too large"])
def test_a_batch_that_cannot_be_read_is_an_error_of_its_partition(kind: str) -> None:
    payload, fields = contents()[kind]
    state = state_with(sealed(payload, **fields))
    for version in range(4):
        assert fetched(state, version).error_code == UNKNOWN_SERVER_ERROR
    assert fetched(state, 4).error_code == 0, "batches are returned as they are"
    for timestamp in (T0, -3):
        assert offset_at(state, timestamp).error_code == UNKNOWN_SERVER_ERROR


def test_headers_that_cannot_be_read_are_not_read() -> None:
    """Fetch up to v3 and ListOffsets do without headers. Produce refuses the batch."""
    payload, fields = contents()["header key null"]
    encoded = sealed(payload, **fields)
    state = state_with(encoded)
    assert [fetched(state, version).error_code for version in range(4)] == [0] * 4
    assert (offset_at(state, T0).error_code, offset_at(state, T0).offset) == (0, 0)
    assert produced(new_state("3.9"), encoded) != 0


@pytest.mark.parametrize("codec", [Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_batches_that_cannot_be_opened_are_accepted(codec: Compression, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = batch(2, compression=codec)
    monkeypatch.setattr(compression, "PACKAGE", "no_such_package")
    state = new_state("3.9")
    assert produced(state, encoded) == 0
    assert fetched(state, 4).records
    assert offset_at(state, T0).error_code == UNKNOWN_SERVER_ERROR


BOMB = compress(Compression.GZIP, bytes(1 << 26))
NOT_GZIP = b"no gzip"


def test_records_beyond_the_budget_of_a_request_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "CHECKED_RECORDS_MAX", 5)
    wrong = sealed(*contents()["bytes behind"][:1])
    for batches, expected in (
        ([wrong], [INVALID_RECORD]),
        ([batch(4), wrong], [0, 0]),
        ([batch(3), wrong], [0, INVALID_RECORD]),
        ([batch(6)], [0]),
        ([sealed(BOMB, codec=Compression.GZIP)], [0]),
        ([sealed(NOT_GZIP, codec=Compression.GZIP)], [UNKNOWN_SERVER_ERROR]),
    ):
        state = new_state("3.9")
        data = tuple(PartitionProduceData(index=index, records=each) for index, each in enumerate(batches))
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=(TopicProduceData(name="t", partition_data=data),))
        response = ask(state, request, 9)
        assert [one.error_code for one in response.responses[0].partition_responses] == expected


@pytest.mark.parametrize("kind", ["bytes behind", "equal deltas", "falling deltas", "negative deltas"])
def test_compaction_in_memory_retains_such_a_batch(kind: str) -> None:
    payload, fields = contents()[kind]
    three = record(2, key=sized(b"a")) + record(1, key=sized(b"b")) + record(0, key=sized(b"k"))
    for wrong in (sealed(payload, **fields), sealed(three, count=3, last=2)):
        data = PartitionData()
        data.append(wrong, 2, T0, 0)
        stored = data.read(0, 1 << 20, min_one_batch=True)
        for _ in range(2):
            data.append(batch(1), 0, T0, 0)
        for _ in compaction(data, data.next_offset, now_ms=T0, delete_retention_ms=0):
            pass
        assert data.read(0, 1 << 20, min_one_batch=True)[: len(stored)] == stored
        assert len(list(data.batches())) == 2


def test_a_codec_without_its_package_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Most clients do not show the text of the response."""

    import_module = importlib.import_module

    def importing(name: str, package: str | None = None) -> ModuleType:
        if name == "cramjam":
            raise ModuleNotFoundError(name=name)
        return import_module(name, package)

    batch = build_record_batch([Record(b"k", b"v" * 100)], compression=Compression.SNAPPY)
    state = new_state(topics={"snappy-of-a-table": 1}, settings={"log.cleanup.policy": "compact"})
    monkeypatch.setattr(importlib, "import_module", importing)
    partitions = (PartitionProduceData(index=0, records=batch),)
    topics = (TopicProduceData(name="snappy-of-a-table", partition_data=partitions),)
    for _ in range(2):
        response = ask(state, ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 8)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    (logged,) = [message for message in caplog.messages if "snappy-of-a-table" in message]
    assert "pip install cramjam" in logged
