"""No request costs more than its budget, however often it names a partition and whatever batches have.

Records are decoded for consumers of releases before 0.11, whose records are converted, and to look up timestamps.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from itertools import product
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.codes import ErrorCode
from kproto.errors import DecodeError
from kproto.headers import request_frame
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.records import record
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.batches import read_batches, read_records
from kproto.records.compression import Compression
from kproto.records.message_set import LegacyMessage, seal_legacy
from kproto.records.record import Record, RecordHeader, decode_in_pieces, decode_records, encode_records
from kproto.records.record_batch import RecordBatch, build_record_batch, read_record_batch
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.handlers import _fetched_partition, k01_fetch
from kproto_server.handlers.k01_fetch import CONVERTED_MAX_BYTES, CONVERTED_RECORDS_MAX
from kproto_server.observation.observe import Observations
from kproto_server.partition_log import decoding, lookup
from kproto_server.partition_log.conversion import down_converted
from kproto_server.partition_log.decoding import CONTENT_MAX_BYTES, PIECE_RECORDS
from kproto_server.partition_log.partition_data import PartitionData
from kproto_server.requests.context import ConnectionInfo
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import NOW_MS

TIMES = 500
MEGABYTE = 1 << 20
MAX_BYTES = 2**31 - 1
OLD_VERSIONS = (0, 2, 3)
MAX_TIMESTAMP = -3


def broker_with(*batches: bytes, partition_count: int = 1) -> InMemoryBroker:
    """Return a broker whose topic ``t`` has these batches in each partition."""
    broker = InMemoryBroker(kafka_version="3.9", topics={"t": partition_count})
    client = broker.connect()
    for index, batch in product(range(partition_count), batches):
        topics = (TopicProduceData(name="t", partition_data=(PartitionProduceData(index=index, records=batch),)),)
        produced = client.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 7)
        assert produced.responses[0].partition_responses[0].error_code == ErrorCode.NONE  # type: ignore[attr-defined]  # a ProduceResponse
    return broker


def fetch(
    offset: int = 0, times: int = 1, max_bytes: int = MEGABYTE, max_wait_ms: int = 0, min_bytes: int = 1
) -> FetchRequest:
    partitions = (FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes),)
    topics = (FetchTopic(topic="t", partitions=partitions),) * times
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=MAX_BYTES, topics=topics)


def fetched(broker: InMemoryBroker, version: int, request: FetchRequest) -> list[Any]:
    response: Any = broker.connect().ask(request, version)
    return [partition for topic in response.responses for partition in topic.partitions]


def numbered(count: int, value: bytes = b"v") -> list[Record]:
    return [Record(b"k", value, offset=offset, timestamp=1) for offset in range(count)]


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=40), st.integers(1, 50), st.integers(1, 2000))
def test_pieces_have_the_records_of_the_whole(values: list[bytes], piece_records: int, piece_bytes: int) -> None:
    records = [Record(None, value, offset=offset, timestamp=7) for offset, value in enumerate(values)]
    data = encode_records(records, base_offset=0, base_timestamp=7)
    pieces = list(decode_in_pieces(data, len(records), piece_records, piece_bytes, 0, 7))
    assert [record for piece in pieces for record in piece] == records
    assert all(0 < len(piece) <= piece_records for piece in pieces)
    assert decode_records(data, len(records), base_timestamp=7) == records


@pytest.mark.parametrize("change", [-1, 1], ids=["too few", "too many"])
@pytest.mark.parametrize("piece_records", [1, 2, 100])
def test_a_wrong_count_is_found_in_pieces(change: int, piece_records: int) -> None:
    data = encode_records(numbered(6), base_offset=0, base_timestamp=1)
    with pytest.raises(DecodeError):
        list(decode_in_pieces(data, 6 + change, piece_records, MEGABYTE))


def transactions(broker: InMemoryBroker, count: int, *, committed: bool, with_records: bool) -> None:
    assert broker.state.cluster.ensure_internal_topic("__transaction_state", NOW_MS)
    client = broker.connect()
    made: Any = client.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 1)
    producer_id, epoch = made.producer_id, made.producer_epoch
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=(AddPartitionsToTxnTopic(name="t", partitions=(0,)),),
    )
    end = EndTxnRequest(transactional_id="x", producer_id=producer_id, producer_epoch=epoch, committed=committed)
    for sequence in range(count):
        client.ask(added, 1)
        if with_records:
            batch = build_record_batch(
                numbered(1), producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, flags=TRANSACTIONAL
            )
            partitions = (PartitionProduceData(index=0, records=batch),)
            topics = (TopicProduceData(name="t", partition_data=partitions),)
            client.ask(ProduceRequest(transactional_id="x", acks=-1, timeout_ms=1000, topic_data=topics), 7)
        ended: Any = client.ask(end, 1)
        assert ended.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_markers_of_transactions_cost_by_their_bytes(version: int) -> None:
    """They are not in the response, so only what was read counts."""
    broker = broker_with()
    transactions(broker, 100, committed=True, with_records=False)
    with mock.patch.object(
        PartitionData, "_read_batches", autospec=True, side_effect=PartitionData._read_batches
    ) as read:
        found = fetched(broker, version, fetch(times=TIMES))
    assert {partition.records for partition in found} == {b""}
    assert found[0].high_watermark == 100
    assert 0 < read.call_count < CONVERTED_MAX_BYTES // (100 * 70) < TIMES


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_a_response_has_few_aborted_transactions_but_all_of_its_records(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(_fetched_partition, "ABORTED_MAX", limit)
    broker = broker_with()
    transactions(broker, 50, committed=False, with_records=True)
    offset, responses = 0, 0
    while offset < 100:
        found = fetched(broker, 4, fetch(offset, times=TIMES).replace(isolation_level=1))
        assert found[0].records, "each response has new records"
        for partition in found:
            batches: list[Any] = list(read_batches(partition.records))
            aborted = {one.first_offset for one in partition.aborted_transactions}
            assert aborted >= {batch.header.base_offset for batch in batches if not batch.is_control}
        assert sum(len(one.aborted_transactions) for one in found) <= limit + 100, "at most those of one more partition"
        offset = list(read_batches(found[0].records))[-1].last_offset + 1
        responses += 1
    assert (responses == 1) == (limit == 1000)


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_decompressed_bytes_count(version: int) -> None:
    batch, count = build_record_batch([Record(b"k", bytes(MEGABYTE))], compression=Compression.GZIP), 20
    broker = broker_with(batch, partition_count=count)
    partitions = tuple(
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=MEGABYTE) for index in range(count)
    )
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=MAX_BYTES, topics=(FetchTopic(topic="t", partitions=partitions),)
    )
    with mock.patch.object(RecordBatch, "content", autospec=True, side_effect=RecordBatch.content) as content:
        found = fetched(broker, version, request)
    assert content.call_count == CONTENT_MAX_BYTES // MEGABYTE
    assert [bool(partition.records) for partition in found] == [index < content.call_count for index in range(count)]


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_converted_records_are_counted(version: int) -> None:
    broker = broker_with(*[build_record_batch(numbered(1000))] * 30)
    found = fetched(broker, version, fetch(times=TIMES))
    count = sum(len(list(read_records(partition.records))) for partition in found)
    assert CONVERTED_RECORDS_MAX - 1000 <= count <= CONVERTED_RECORDS_MAX


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
@pytest.mark.parametrize("version", [1, 3])
def test_a_batch_of_many_records_is_converted_in_parts(version: int, compression: Compression) -> None:
    """As many as a request may have converted; the consumer fetches the others next."""
    broker = broker_with(build_record_batch(numbered(40_000), compression=compression))
    offset, requests = 0, 0
    while offset < 40_000:
        (partition,) = fetched(broker, version, fetch(offset))
        offsets = [record.offset for record in read_records(partition.records)]
        first = offset if compression is Compression.NONE else offset - offset % PIECE_RECORDS
        assert offsets == list(range(first, offsets[-1] + 1))
        offset = offsets[-1] + 1
        requests += 1
    assert requests > 2


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_a_batch_that_compaction_has_emptied_has_no_records(compression: Compression) -> None:
    emptied = build_record_batch([], base_offset=0, last_offset=4, compression=compression)
    batch = read_record_batch(emptied)[0]
    assert not list(batch.pieces(batch.content(MEGABYTE), 1, 1))
    assert not batch.records()
    rest = build_record_batch([Record(b"k", b"v", offset=5, timestamp=1)], base_offset=5)
    converted = down_converted(emptied + rest, 0, magic=1)
    assert [record.offset for record in read_records(converted)] == [5]


def test_a_wrapper_without_messages_is_converted_to_nothing() -> None:
    """In a log of another program; the connection closed."""
    rest = build_record_batch([Record(b"k", b"v", offset=5, timestamp=1)], base_offset=5)
    for magic in (0, 1):
        wrapper = LegacyMessage(
            offset=4,
            message_size=0,
            crc=0,
            magic=magic,
            attributes=Compression.GZIP,
            key=None,
            value=gzip.compress(b""),
        )
        converted = down_converted(seal_legacy(wrapper) + rest, 0, magic=1)
        assert [record.offset for record in read_records(converted or b"")] == [5]


def test_a_consumer_of_committed_records_without_room_gets_one_batch() -> None:
    """Also with aborted transactions ahead of it (BA-72)."""
    broker = broker_with()
    transactions(broker, 2, committed=False, with_records=True)
    (partition,) = fetched(broker, 4, fetch(max_bytes=0).replace(isolation_level=1))
    assert len(list(read_batches(partition.records))) == 1
    assert [one.first_offset for one in partition.aborted_transactions][:1] == [0]


def test_a_small_compressed_batch_stays_whole() -> None:
    broker = broker_with(build_record_batch(numbered(100), compression=Compression.GZIP))
    (partition,) = fetched(broker, 2, fetch(50))
    (batch,) = read_batches(partition.records)
    assert len(batch.records()) == 100


def test_a_batch_that_is_too_large_when_decompressed_is_not_decoded() -> None:
    batch = build_record_batch([Record(b"k", bytes(CONTENT_MAX_BYTES), timestamp=1)], compression=Compression.GZIP)
    broker = broker_with(batch)
    for version in OLD_VERSIONS:
        assert {one.error_code for one in fetched(broker, version, fetch())} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert {one.error_code for one in fetched(broker, 4, fetch())} == {ErrorCode.NONE}
    assert looked_up(broker, 1) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert looked_up(broker, 2) == [ErrorCode.NONE], "there is no record of this time or a later one"


def looked_up(broker: InMemoryBroker, *timestamps: int) -> list[int]:
    """Return the errors of look-ups, each in the partition of its number."""
    partitions = tuple(
        ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index, timestamp in enumerate(timestamps)
    )
    topics = (ListOffsetsTopic(name="t", partitions=partitions),)
    response: Any = broker.connect().ask(ListOffsetsRequest(replica_id=-1, topics=topics), 4)
    return [partition.error_code for topic in response.topics for partition in topic.partitions]


def test_timestamps_are_looked_up_within_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Special timestamps decode nothing."""
    records = [record._replace(timestamp=9, value=bytes(1000)) for record in numbered(10)]
    late = ErrorCode.REQUEST_TIMED_OUT
    monkeypatch.setattr(lookup, "DECODED_RECORDS_MAX", 15)
    assert looked_up(broker_with(build_record_batch(records), partition_count=4), 9, 8, 7, -1) == [0, 0, late, 0]
    monkeypatch.setattr(lookup, "DECODED_RECORDS_MAX", 1000)
    monkeypatch.setattr(lookup, "DECODED_CONTENT_MAX_BYTES", 15_000)
    compressed = broker_with(build_record_batch(records, compression=Compression.GZIP), partition_count=4)
    assert looked_up(compressed, 9, 8, 7, -1) == [0, 0, late, 0]


@pytest.mark.parametrize(
    ("timestamps", "looked_up", "offset", "pieces"),
    [
        (range(10), 3, 3, 2),
        (range(10), MAX_TIMESTAMP, 9, 5),
        ([7] * 10, MAX_TIMESTAMP, 0, 1),
        ([1, 5, 2, 5, 4], MAX_TIMESTAMP, 1, 1),
    ],
    ids=["by time", "greatest is last", "all equal", "greatest twice"],
)
def test_a_lookup_ends_with_the_piece_that_has_the_record(
    monkeypatch: pytest.MonkeyPatch, timestamps: Sequence[int], looked_up: int, offset: int, pieces: int
) -> None:
    monkeypatch.setattr(decoding, "PIECE_RECORDS", 2)
    records = [Record(b"k", None, offset=index, timestamp=timestamp) for index, timestamp in enumerate(timestamps)]
    broker = broker_with(build_record_batch(records))
    topics = (ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(partition_index=0, timestamp=looked_up),)),)
    with mock.patch.object(decoding.DecodingBudget, "take", autospec=True) as take:
        response: Any = broker.connect().ask(ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    assert response.topics[0].partitions[0].offset == offset
    assert take.call_count == 1 + pieces, "for the batch, and for its pieces"


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_others_are_served_between_the_slices_of_a_conversion(
    monkeypatch: pytest.MonkeyPatch, compression: Compression
) -> None:
    broker = broker_with(*[build_record_batch(numbered(100), compression=compression)] * 5)
    at_once = fetched(broker, 3, fetch())
    monkeypatch.setattr(k01_fetch, "SLICE_RECORDS", 150)
    dispatcher = Dispatcher(broker.state, Observations(), takes_turns=True)
    connection = Connection(dispatcher, broker.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    assert connection.receive(request_frame(fetch(), 3, correlation_id=7), NOW_MS) == b""
    turns, response = 0, b""
    while dispatcher.turns:
        dispatcher.give_turn()
        assert dispatcher.take_runnable() == [connection]
        response = connection.resume(NOW_MS)
        turns += 1
    assert turns == 2
    assert at_once[0].records in response


def test_a_fetch_that_waits_reads_nothing_before_its_response_is_made() -> None:
    """An append may end the wait of many clients; a large response waits for its turn then."""
    broker = broker_with(build_record_batch(numbered(10)))
    with mock.patch.object(
        PartitionData, "_read_batches", autospec=True, side_effect=PartitionData._read_batches
    ) as read:
        connection = Connection(broker.dispatcher, broker.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
        request = fetch(max_bytes=MAX_BYTES, max_wait_ms=60_000, min_bytes=10_000)
        assert MAX_BYTES > k01_fetch.SMALL_BYTES
        assert connection.receive(request_frame(request, 4, correlation_id=7), NOW_MS) == b""
        assert read.call_count == 1
        data = broker.state.cluster.topics["t"].partitions[0].data
        for _ in range(5):
            data.append(build_record_batch(numbered(10)), 9, NOW_MS, 0)
        assert read.call_count == 1
        assert not connection.is_delay_complete
        data.append(build_record_batch(numbered(1, bytes(10_000))), 0, NOW_MS, 0)
        assert connection.is_delay_complete
        data.append(build_record_batch(numbered(1, bytes(k01_fetch.SMALL_BYTES))), 0, NOW_MS, 0)
        assert (connection.resume(NOW_MS), read.call_count) == (b"", 1)
        assert connection.has_turn_to_come
        assert len(connection.resume(NOW_MS)) > k01_fetch.SMALL_BYTES
        assert read.call_count == 2


def test_a_fetch_that_waits_for_many_batches_does_not_look_at_all_of_them_at_each_append() -> None:
    broker = broker_with()
    connection = Connection(broker.dispatcher, broker.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    batch = build_record_batch(numbered(1))
    request = fetch(max_bytes=MAX_BYTES, max_wait_ms=60_000, min_bytes=200 * len(batch))
    assert connection.receive(request_frame(request, 4, correlation_id=7), NOW_MS) == b""
    data = broker.state.cluster.topics["t"].partitions[0].data
    readable_bytes = PartitionData.readable_bytes
    with mock.patch.object(PartitionData, "readable_bytes", autospec=True, side_effect=readable_bytes) as look:
        for _ in range(199):
            data.append(batch, 0, NOW_MS, 0)
        assert not connection.is_delay_complete
        data.append(batch, 0, NOW_MS, 0)
        assert connection.is_delay_complete
    assert look.call_count == 1


@pytest.mark.parametrize(
    ("min_bytes", "max_bytes", "partition_max_bytes", "is_due"),
    [
        (1000, MAX_BYTES, 1000, True),
        (1001, MAX_BYTES, 1000, False),
        (1 << 30, 1000, MAX_BYTES, True),
        (1, 0, MAX_BYTES, True),
        (1 << 30, MAX_BYTES, MAX_BYTES, False),
    ],
    ids=["cut by the partition's limit", "more than its limit", "cut by the request's limit", "no bytes", "not enough"],
)
def test_a_fetch_whose_records_a_limit_cuts_short_does_not_wait(
    min_bytes: int, max_bytes: int, partition_max_bytes: int, is_due: bool
) -> None:
    """Kafka truncates the last batch, so that its records have as many bytes as the limit; here batches are whole."""
    broker = broker_with(*[build_record_batch(numbered(1, bytes(600)))] * 3)
    request = fetch(max_bytes=partition_max_bytes, max_wait_ms=60_000, min_bytes=min_bytes).replace(max_bytes=max_bytes)
    connection = Connection(broker.dispatcher, broker.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    assert bool(connection.receive(request_frame(request, 4, correlation_id=7), NOW_MS)) is is_due


def test_a_partition_that_does_not_exist_ends_no_wait_and_one_that_is_deleted_does() -> None:
    broker = broker_with()
    broker.state.cluster.create_topic("deleted", partition_count=1, replication_factor=1)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MAX_BYTES)
    topics = tuple(FetchTopic(topic=name, partitions=(partition,)) for name in ("t", "missing", "deleted"))
    request = fetch(max_wait_ms=60_000, min_bytes=10_000).replace(topics=topics)
    connection = Connection(broker.dispatcher, broker.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    assert connection.receive(request_frame(request, 4, correlation_id=7), NOW_MS) == b""
    data = broker.state.cluster.topics["t"].partitions[0].data
    data.append(build_record_batch(numbered(1)), 0, NOW_MS, 0)
    assert not connection.is_delay_complete
    broker.connect().ask(DeleteTopicsRequest(topic_names=("deleted",), timeout_ms=1000), 1)
    assert connection.is_delay_complete


def test_a_fetch_of_committed_records_waits_for_the_end_of_an_open_transaction() -> None:
    broker = broker_with()
    connection = Connection(broker.dispatcher, broker.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    request = fetch(max_bytes=MAX_BYTES, max_wait_ms=60_000).replace(isolation_level=1)
    assert connection.receive(request_frame(request, 4, correlation_id=7), NOW_MS) == b""
    data = broker.state.cluster.topics["t"].partitions[0].data
    open_batch = build_record_batch(numbered(1), producer_id=1, producer_epoch=0, base_sequence=0, flags=TRANSACTIONAL)
    data.append(open_batch, 0, NOW_MS, 0, 1)
    assert not connection.is_delay_complete


@pytest.mark.parametrize("timestamp", [MAX_TIMESTAMP, 1])
def test_a_lookup_of_a_timestamp_decodes_no_headers(timestamp: int) -> None:
    """One record may have more headers than a batch has records: 300,000 took 230 ms."""
    broker = broker_with(build_record_batch([Record(b"k", b"v", (RecordHeader("h", b"x"),) * 100, timestamp=1)]))
    partitions = (ListOffsetsPartition(partition_index=0, timestamp=timestamp),)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=partitions),))
    with mock.patch.object(record, "_headers", side_effect=record._headers) as decoded_headers:
        response: Any = broker.connect().ask(request, 7)
    (found,) = response.topics[0].partitions
    assert (found.error_code, found.offset, found.timestamp) == (0, 0, 1)
    assert not decoded_headers.called
