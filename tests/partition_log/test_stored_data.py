"""Records on disk: compared with the same records in memory, and after a restart."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k21_delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kproto.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
from kproto.records.batch_header import HEADER_SIZE, TRANSACTIONAL, position_of
from kproto.records.batches import read_records
from kproto.records.message_set import build_message_set
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch, read_header, seal
from kproto_server.broker.broker import Broker, DataDirectory
from kproto_server.deferred import at_once
from kproto_server.log_manager.markers import EndMarker, append_marker
from kproto_server.log_manager.retention_task import retention_config
from kproto_server.partition_log import stored_data
from kproto_server.partition_log.decoding import DecodingBudget
from kproto_server.partition_log.lookup import BATCHES_OF_RECORD, lookup_budget, record_at
from kproto_server.partition_log.partition_data import COMPARED_BATCHES, PartitionData
from kproto_server.partition_log.producers import BatchMetadata
from kproto_server.partition_log.stored_data import READ_SIZE, PendingAppend, StoredData
from kproto_server.snapshots.topics import _in_memory
from kproto_server.storage.compaction import Compaction
from kproto_server.storage.errors import DamagedBatch
from kproto_server.storage.log_dir import LogDir
from kproto_server.testing.simulated_disk import SimulatedDisk, SimulatedFile
from tests.partition_log.conversation import Talk
from tests.partition_log.conversation_chapters import (
    batch,
    delete_records,
    fetch,
    message_set,
    newest,
    offsets,
    produce,
)
from tests.persistence.disk_broker import DiskBroker

if TYPE_CHECKING:
    from pathlib import Path

    from kproto_server.configuration.data_directory import Durability
    from kproto_server.storage.partition_log import PartitionLog
    from kproto_server.testing.in_memory import ConnectedPair

ALL = 2**31 - 1


class ImmediateWriter:
    """A writer that settles each append at once."""

    def __init__(self, log_dir: LogDir) -> None:
        self._log_dir = log_dir

    def append_to(self, log: PartitionLog, item: PendingAppend, encoded: bytes, record_count: int) -> None:
        item.settle(self._log_dir.writer.write(log, encoded, record_count))


def opened(disk: SimulatedDisk, segment_bytes: int) -> tuple[LogDir, StoredData]:
    log_dir = LogDir(disk, durability="os", opens_existing=lambda topic: True, segment_bytes=segment_bytes)
    log_dir.create_log("t", 0)
    return log_dir, StoredData(log_dir.logs["t", 0], ImmediateWriter(log_dir), 0)


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 4), max_size=12),
    segment_bytes=st.integers(100, 600),
    offset=st.integers(0, 40),
    limit=st.integers(0, 1000),
    reads_between=st.booleans(),
)
def test_reads_equal_those_of_memory(
    sizes: list[int], segment_bytes: int, offset: int, limit: int, reads_between: bool
) -> None:
    """BA-72, BA-73, BA-80: with any segments, and with an index that is built at once or between the appends."""
    disk = SimulatedDisk()
    log_dir, stored = opened(disk, segment_bytes)
    memory = PartitionData()
    for number, size in enumerate(sizes):
        timestamp = 1000 * (number % 5)
        for data in (stored, memory):
            data.append(batch(size, timestamp=timestamp), size - 1, timestamp + 10 * (size - 1), epoch=number // 4)
        if reads_between:
            assert stored.read(offset, limit, min_one_batch=True) == memory.read(offset, limit, min_one_batch=True)
    log_dir.close()
    _, again = opened(disk, segment_bytes)
    for data in (stored, again):
        assert (data.start_offset, data.next_offset) == (memory.start_offset, memory.next_offset)
        assert data.read(offset, limit, min_one_batch=True) == memory.read(offset, limit, min_one_batch=True)
        assert at_once(data.batch_at_time(limit * 5)) == at_once(memory.batch_at_time(limit * 5))
        assert data.epoch_at(offset) == memory.epoch_at(offset)
        assert data.size_bytes == memory.size_bytes


@pytest.mark.parametrize("failing_operation", [None, *range(60)])
def test_a_reader_sees_the_same_table_at_every_step_of_compactions(failing_operation: int | None) -> None:
    """The first compaction rewrites each segment, later ones merge them; one operation of the disk fails."""
    disk = SimulatedDisk()
    log_dir, stored = opened(disk, 600)
    expected: dict[bytes | None, bytes | None] = {}
    for number in range(60):
        record = Record(b"key %d" % (number * 7 % 12), b"%d" % number * (number % 19 + 1))
        expected[record.key] = record.value
        stored.append(build_record_batch([record]), 0, -1, 0)
    operation_count = disk.operation_count
    if failing_operation is not None:
        disk.fails = lambda operation: disk.operation_count - operation_count == failing_operation

    def check() -> None:
        found = {record.key: record.value for record in read_records(stored.read(0, ALL, min_one_batch=True))}
        assert found == expected

    for _ in range(4):
        compaction = Compaction(disk, stored.log, log_dir.writer, 1000, 1)
        try:
            for work in compaction.run():
                check()
                if work is not None:
                    work()
                    check()
        except OSError:
            check()
    assert len(stored.log.segments()) < 5
    assert not [name for name in disk.names("t-0") if name.endswith((".cleaned", ".swap"))]


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_records_survive_a_restart(durability: Durability, tmp_path: Path) -> None:
    data = DataDirectory(str(tmp_path), durability)
    idempotent = batch(2, producer_id=5, producer_epoch=0, base_sequence=0)
    with Broker(data=data) as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("t", 2)
        assert produce(talk, "", "t", idempotent, 7).responses[0].partition_responses[0].base_offset == 0
        produce(talk, "", "t", message_set(3), 1)
        before = fetch(talk, "", {"t": {0: 0}}, 12).responses[0].partitions[0]
    with Broker(data=data) as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.topic_ids["t"] = bytes(16)
        again = produce(talk, "", "t", idempotent, 7).responses[0].partition_responses[0]
        assert (again.error_code, again.base_offset) == (0, 0)  # BA-65: batches from before the restart are duplicates
        assert fetch(talk, "", {"t": {0: 0}}, 12).responses[0].partitions[0] == before
        assert before.high_watermark == 5
        assert produce(talk, "", "t", batch(1), 7).responses[0].partition_responses[0].base_offset == 5
        assert sorted(path.name for path in tmp_path.glob("t-*")) == ["t-0"]  # a partition without records has no log


def test_a_restart_keeps_the_log_start_offset_and_no_deleted_topic(tmp_path: Path) -> None:
    data = DataDirectory(str(tmp_path), "os")
    with Broker(data=data) as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("t")
        talk.create("gone")
        for topic in ("t", "gone"):
            produce(talk, "", topic, batch(4), 7)
        delete_records(talk, "", "t", 3, 2)
    with Broker(data=data) as broker:
        talk = Talk(broker.bootstrap_servers)
        assert offsets(talk, "", {"t": {0: -2}}, 5).topics[0].partitions[0].offset == 3
        talk.delete("gone")
        assert not list(tmp_path.glob("gone-*"))
        talk.create("gone")
        assert produce(talk, "", "gone", batch(1), 7).responses[0].partition_responses[0].base_offset == 0


def test_consumers_read_the_offsets_topic_like_any_other(tmp_path: Path) -> None:
    data = DataDirectory(str(tmp_path), "os")
    with Broker(data=data, settings={"offsets.topic.num.partitions": "1"}) as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("t")
        talk.has_offsets_topic()
        talk.commit("g", "t", 7)
        read = fetch(talk, "", {"__consumer_offsets": {0: 0}}, newest(talk, 1)).responses[0].partitions[0]
        assert read.high_watermark == 1
        assert b"\0\1\0\1g\0\1t\0\0\0\0" in read.records  # Kafka's key of an offset


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["plain", "idempotent", "transactional", "marker", "read"]), st.integers(0, 1)),
        max_size=20,
    ),
    segment_bytes=st.integers(100, 900),
)
def test_batches_that_are_indexed_as_they_are_settled_are_indexed_as_they_are_read(
    steps: list[tuple[str, int]], segment_bytes: int
) -> None:
    disk = SimulatedDisk()
    log_dir, stored = opened(disk, segment_bytes)
    for number, (kind, producer_id) in enumerate(steps):
        epoch = number // 6
        match kind:
            case "plain":
                stored.append(batch(2, timestamp=number), 1, number, epoch)
            case "read":
                stored.read(0, ALL, min_one_batch=False)
            case "marker":
                append_marker(stored, EndMarker(producer_id, 0, 0, commits=number % 2 == 0), epoch, number)
            case _:
                flags = TRANSACTIONAL if kind == "transactional" else 0
                encoded = batch(1, timestamp=number, producer_id=producer_id, producer_epoch=0, flags=flags)
                stored.producers.check(producer_id, 0, -1, 1, refuses_unknown=False)  # completes the index
                stored.append(encoded, 0, number, epoch, producer_id)
    stored.refresh_index()
    log_dir.close()
    _, again = opened(disk, segment_bytes)
    again.refresh_index()
    assert stored._columns() == again._columns()
    assert stored.epochs == again.epochs
    assert stored.transactions.open == again.transactions.open
    assert stored.transactions.aborted_in(0, ALL) == again.transactions.aborted_in(0, ALL)


def test_batches_of_producers_are_not_read_again() -> None:
    disk = SimulatedDisk()
    _, stored = opened(disk, 10_000)
    with mock.patch.object(StoredData, "_index_file", autospec=True, side_effect=StoredData._index_file) as read:
        for number in range(10):
            stored.append(batch(1, producer_id=7, flags=TRANSACTIONAL), 0, 0, 0, 7)
            append_marker(stored, EndMarker(7, number, 0, commits=True), 0, 0)
    assert read.call_count == 1, "there is no index before the first batch"


def test_batches_without_a_producer_are_not_read_when_they_are_written() -> None:
    broker = DiskBroker("os", kafka_version="4.4")
    broker.broker.state.cluster.create_topic("t", partition_count=1, replication_factor=1)
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch(2)),))
    with mock.patch.object(StoredData, "refresh_index") as read:
        for offset in range(0, 6, 2):
            response = broker.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(data,)), 9)
            assert response.responses[0].partition_responses[0].base_offset == offset
    assert not read.called


def test_the_first_reader_of_many_batches_indexes_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_data, "SETTLED_MAX", 10)
    _, stored = opened(SimulatedDisk(), 1_000)
    for number in range(25):
        stored.append(batch(1), 0, number, 0)
    with mock.patch.object(StoredData, "_index_batch", autospec=True, side_effect=StoredData._index_batch) as indexed:
        assert len(list(read_records(stored.read(0, ALL, min_one_batch=False)))) == 25
    assert indexed.call_count == 5


def test_a_segment_that_cannot_be_indexed_fails_its_reader_and_no_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_data, "SETTLED_MAX", 2)
    _, stored = opened(SimulatedDisk(), 10_000)
    with mock.patch.object(StoredData, "_index_file", side_effect=OSError(errno.EIO, "unreadable")):
        appends = [stored.append(batch(1), 0, 0, 0) for _ in range(4)]
        with pytest.raises(OSError, match="unreadable"):
            stored.read(0, ALL, min_one_batch=False)
    assert [append.error for append in appends] == [0] * 4
    assert len(list(read_records(stored.read(0, ALL, min_one_batch=False)))) == 4


def looked_up(data: PartitionData, timestamp: int | None) -> int | None:
    """Return the offset that a timestamp stands for."""
    steps = record_at(data, timestamp, range(data.start_offset, data.next_offset), lookup_budget())
    while True:
        try:
            next(steps)
        except StopIteration as end:
            record: Record | None = end.value
            return None if record is None else record.offset


@pytest.mark.parametrize("is_stored", [False, True])
def test_timestamps_of_deleted_records_do_not_count(is_stored: bool) -> None:
    """BA-80: the first batch has such a record only; on disk it is in the index after a restart."""
    disk = SimulatedDisk()
    log_dir, stored = opened(disk, 10_000)
    data: PartitionData = stored if is_stored else PartitionData()
    for times in ((50, 10), (10, 20), (20, 10)):
        records = [Record(None, b"", timestamp=time, offset=index) for index, time in enumerate(times)]
        data.append(build_record_batch(records), 1, max(times), 0)
    assert [looked_up(data, time) for time in (5, 20, 21, None)] == [0, 0, 0, 0]
    data.delete_before(1)
    assert [looked_up(data, time) for time in (5, 20, 21, None)] == [1, 3, None, 3]
    data.delete_before(2)
    if is_stored:
        log_dir.close()
        again, _ = opened(disk, 10_000)
        data = StoredData(again.logs["t", 0], ImmediateWriter(again), 2)
    assert [looked_up(data, time) for time in (5, 20, 21, None)] == [2, 3, None, 3]


def test_a_time_after_all_records_is_looked_up_in_slices() -> None:
    """The usual question of `offsetsForTimes`: what came since then? Nothing is decoded."""
    data = PartitionData()
    for _ in range(3 * COMPARED_BATCHES):
        data.append(b"", 0, 5, 0)
    budget = DecodingBudget(1, 1, COMPARED_BATCHES // BATCHES_OF_RECORD)
    assert len(list(record_at(data, 6, range(data.next_offset), budget))) == 3
    assert not budget.is_used_up


def test_a_damaged_batch_is_an_error_of_the_file() -> None:
    """Produce and markers, which need the producers, are ready for errors of files alone."""
    disk = SimulatedDisk()
    log_dir, stored = opened(disk, 10_000)
    stored.append(batch(1), 0, 0, 0)
    log_dir.close()
    file = disk.open(stored.log.segments()[0].path)
    file.write_at(position_of("batch_length"), bytes(4))
    file.close()
    with pytest.raises(DamagedBatch):
        stored.refresh_index()


def test_the_last_message_of_an_old_segment_may_be_shorter_than_the_header_of_a_batch() -> None:
    """LF-4: "hello" of a console producer of 0.10 has 39 bytes, the header of a batch of magic 2 has 61."""
    disk = SimulatedDisk()
    disk.make_directory("t-0")
    messages = [build_message_set([Record(None, b"hello", offset=offset)], magic=offset % 2) for offset in range(4)]
    for base_offset in (0, 2):
        file = disk.open(f"t-0/{base_offset:020}.log", create=True)
        file.write_at(0, b"".join(messages[base_offset : base_offset + 2]))
        file.close()
    _, stored = opened(disk, 10_000)
    assert stored.read(0, ALL, min_one_batch=True) == b"".join(messages)
    with pytest.raises(UsageError, match=r"before 0\.11"):
        _in_memory(stored)


def test_a_batch_that_is_not_settled_stays_when_its_segment_is_closed() -> None:
    """A batch that is larger than the write-ahead log is written first, and settled after the sync."""
    settled: list[tuple[PendingAppend, int]] = []

    class LateWriter(ImmediateWriter):
        def append_to(self, log: PartitionLog, item: PendingAppend, encoded: bytes, record_count: int) -> None:
            settled.append((item, self._log_dir.writer.write(log, encoded, record_count)))

    disk = SimulatedDisk()
    log_dir, _ = opened(disk, 10_000)
    stored = StoredData(log_dir.logs["t", 0], LateWriter(log_dir), 0)
    for _ in range(2):
        stored.append(batch(1), 0, 0, 0)
    item, error = settled.pop(0)
    item.settle(error)
    stored.log.roll()
    stored.delete_before(1)
    assert stored.read(0, ALL, min_one_batch=True) == b""
    assert not stored.begins_after(stored.log.closed_segments()[0])
    item, error = settled.pop(0)
    item.settle(error)
    assert [record.offset for record in read_records(stored.read(0, ALL, min_one_batch=True))] == [1]
    stored.delete_before(2)
    assert stored.begins_after(stored.log.closed_segments()[0])


@pytest.mark.parametrize("retained", [0, 1])
def test_a_compacted_batch_has_the_sequences_of_all_its_records(retained: int) -> None:
    """BA-65: `DefaultRecordBatch.lastSequence`. The cleaner of a real broker retains a producer's last batch without
    records."""
    whole = batch(5, producer_id=7, producer_epoch=0, base_sequence=0)
    header = read_header(whole).replace(record_count=retained)
    data = PartitionData()
    data.add_stored(seal(header, b""))
    found = data.producers.check(7, 0, 0, 5, refuses_unknown=False)
    assert isinstance(found, BatchMetadata), "a duplicate"
    assert data.producers.check(7, 0, 5, 1, refuses_unknown=False) == ErrorCode.NONE


def test_a_read_that_failed_leaves_no_batch_in_the_index_twice() -> None:
    disk = SimulatedDisk()
    _, stored = opened(disk, 10_000_000)
    for _ in range(20):
        stored.append(batch(1, size=5000), 0, 0, 0)
    read_at = SimulatedFile.read_at

    def read_first(file: SimulatedFile, position: int, size: int) -> bytes:
        if position:
            raise OSError(errno.EIO, "")
        return read_at(file, position, size)

    with mock.patch.object(SimulatedFile, "read_at", read_first), pytest.raises(OSError, match="Errno"):
        stored.refresh_index()
    stored.refresh_index()
    assert len(list(stored.batches())) == 20


def test_a_partition_whose_file_cannot_be_read_has_an_error() -> None:
    """DeleteRecords and DescribeProducers closed the connection."""
    broker = DiskBroker("os", kafka_version="4.4")
    broker.broker.state.cluster.create_topic("t", partition_count=1, replication_factor=1)
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch(2)),))
    broker.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(data,)), 9)
    partition = DeleteRecordsPartition(partition_index=0, offset=1)
    delete = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name="t", partitions=(partition,)),), timeout_ms=1000)
    describe = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,)),))
    with mock.patch.object(StoredData, "refresh_index", side_effect=OSError(errno.EIO, "")):
        deleted = broker.ask(delete, 2).topics[0].partitions[0]
        described = broker.ask(describe, 0).topics[0].partitions[0]
    assert (deleted.error_code, deleted.low_watermark) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert (described.error_code, described.active_producers) == (ErrorCode.KAFKA_STORAGE_ERROR, ())


def test_records_of_a_file_that_cannot_be_read_do_not_expire() -> None:
    """The error ended the broker."""
    broker = DiskBroker("os", kafka_version="4.4")
    broker.broker.state.cluster.create_topic("t", partition_count=1, replication_factor=1)
    topic = broker.broker.state.cluster.topics["t"]
    stored = broker.broker.state.log_manager.data_of(topic, topic.partitions[0])
    assert isinstance(stored, StoredData)
    config, _ = retention_config(broker.broker.state.settings.current, topic)
    with mock.patch.object(StoredData, "refresh_index", side_effect=OSError(errno.EIO, "")):
        assert at_once(broker.persistence.topic_logs.drop_expired(stored, config, broker.broker.clock.now_ms())) == 0


def test_the_index_reads_the_headers_of_large_batches_alone() -> None:
    disk = SimulatedDisk()
    _, stored = opened(disk, 10_000_000)
    memory = PartitionData()
    for size in [30_000] * 20 + [10] * 20 + [30_000] * 20:
        encoded = build_record_batch([Record(None, bytes(size))])
        for data in (stored, memory):
            data.append(encoded, 0, -1, 0)
    read_at = SimulatedFile.read_at
    with mock.patch.object(SimulatedFile, "read_at", autospec=True, side_effect=read_at) as read:
        stored.refresh_index()
    assert list(stored.batches()) == list(memory.batches())
    assert sum(call.args[2] for call in read.call_args_list) < 4 * READ_SIZE, "the batches have 1.2 MB"
    with mock.patch.object(SimulatedFile, "read_at", autospec=True, side_effect=read_at) as read:
        stored.append(encoded, 0, -1, 0)
        stored.refresh_index()
    assert [call.args[2] for call in read.call_args_list] == [HEADER_SIZE]


@pytest.mark.parametrize("writes_before", [0, 1])
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_batch_that_was_not_written_is_the_next_one_of_its_producer(
    durability: Durability, writes_before: int
) -> None:
    """Later ones, which the producer has sent already, would take its sequence."""
    broker = DiskBroker(durability, kafka_version="4.4")
    broker.broker.state.cluster.create_topic("t", partition_count=1, replication_factor=1)
    others = broker.broker.connect()

    def send(client: ConnectedPair, sequence: int) -> None:
        records = batch(1, producer_id=7, producer_epoch=0, base_sequence=sequence)
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=records),))
        client.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(data,)), 9)

    def settled(client: ConnectedPair) -> int:
        broker.persistence.flush()
        broker.persistence.drain()
        broker.advance(1)
        response: Any = client.responses[0]
        client.responses.clear()
        return int(response.responses[0].partition_responses[0].error_code)

    for sequence in range(writes_before):
        send(broker.client, sequence)
        assert settled(broker.client) == 0
    first = writes_before
    broker.disk.fails = lambda operation: operation.kind == "write" and operation.path.startswith("t-0/0")
    send(broker.client, first)
    broker.persistence.flush()
    send(others, first + 1)  # queued behind the first one
    next_error = ErrorCode.KAFKA_STORAGE_ERROR if durability == "fsync" else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [settled(broker.client), settled(others)] == [ErrorCode.KAFKA_STORAGE_ERROR, next_error]
    broker.disk.fails = lambda operation: False
    found = []
    for sequence in (first + 2, first + 1, first, first + 1, first + 2):
        send(broker.client, sequence)
        found.append(settled(broker.client))
    assert found == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2 + [0] * 3
