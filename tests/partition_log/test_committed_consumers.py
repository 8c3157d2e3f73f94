"""What a consumer of committed records sees, whatever happens to the log: deletions, compactions, restarts.

Method. Random producers append to a partition in memory and to one on disk, and end their transactions. A consumer that
skips aborted transactions as Kafka's clients do reads both from any offset, with any limit, and must find the records
of a model: those below the last stable offset that belong to no aborted transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import hypothesis.strategies as st
from hypothesis import given, settings

from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.batches import read_batches
from kproto.records.control import ControlType, read_end_marker
from kproto.records.record import Record
from kproto.records.record_batch import RecordBatch, build_record_batch
from kproto_server.log_manager.markers import EndMarker, append_marker
from kproto_server.partition_log.memory_compaction import compaction
from kproto_server.partition_log.partition_data import PartitionData
from kproto_server.partition_log.producers import BatchMetadata
from kproto_server.partition_log.stored_data import StoredData
from kproto_server.storage.compaction import Compaction
from kproto_server.testing.simulated_disk import SimulatedDisk
from tests.partition_log.test_stored_data import opened

if TYPE_CHECKING:
    from kproto_server.storage.log_dir import LogDir

SEGMENT_BYTES = 400
DELETE_RETENTION_MS = 1000
OUTSIDE = 0
"""Instead of a producer id: records outside of transactions."""

SEND = st.tuples(st.just("send"), st.integers(0, 3), st.integers(0, 2))
END = st.tuples(st.just("end"), st.integers(1, 3), st.booleans())
DELETE = st.tuples(st.just("delete"), st.integers(0, 30), st.just(0))
RESTART = st.tuples(st.just("restart"), st.just(0), st.just(0))
COMPACT = st.tuples(st.just("compact"), st.integers(0, 2 * DELETE_RETENTION_MS), st.just(0))
STEPS = st.lists(st.one_of(SEND, SEND, SEND, END, END, DELETE, RESTART), max_size=25)
COMPACTED_STEPS = st.lists(st.one_of(SEND, SEND, SEND, END, END, RESTART, COMPACT), max_size=30)


class Sent(NamedTuple):
    """A record of the model."""

    offset: int
    producer_id: int
    key: bytes
    value: bytes


class Logs:
    """The same partition in memory and on disk, and the model of both."""

    def __init__(self) -> None:
        self.memory = PartitionData()
        self._disk = SimulatedDisk()
        self._log_dir: LogDir
        self.stored: StoredData
        self._log_dir, self.stored = opened(self._disk, SEGMENT_BYTES)
        self.sent: list[Sent] = []
        self.open: dict[int, list[Sent]] = {}
        """The records of open transactions, by producer id."""
        self._aborted: set[int] = set()
        self._now_ms = 1000

    def run(self, step: tuple[str, int, int]) -> None:
        kind, first, second = step
        match kind:
            case "send":
                self._send(first, b"%d" % second)
            case "end":
                self._end(first, commit=bool(second))
            case "delete":
                self.memory.delete_before(first)
                self.stored.delete_before(first)
            case "restart":
                start_offset = self.stored.start_offset
                self._log_dir.close()
                self._log_dir, stored = opened(self._disk, SEGMENT_BYTES)
                stored.start_offset = start_offset
                self.stored = stored
            case "compact":
                self._now_ms += first
                self._compact()

    def _send(self, producer_id: int, key: bytes) -> None:
        offset = self.memory.next_offset
        one = Sent(offset, producer_id, key, b"value %d" % offset)
        flags = TRANSACTIONAL if producer_id else 0
        epoch, sequence = (0, offset) if producer_id else (-1, -1)
        encoded = build_record_batch(
            [Record(key, one.value, timestamp=self._now_ms)],
            producer_id=producer_id or -1,
            producer_epoch=epoch,
            base_sequence=sequence,
            flags=flags,
        )
        for data in (self.memory, self.stored):
            data.append(encoded, 0, self._now_ms, 0, producer_id or -1)
            if producer_id:
                batch = BatchMetadata(sequence, sequence, offset, self._now_ms)
                data.producers.add(producer_id, 0, batch, self._now_ms, is_transactional=True)
        self.sent.append(one)
        if producer_id:
            self.open.setdefault(producer_id, []).append(one)

    def _end(self, producer_id: int, *, commit: bool) -> None:
        for data in (self.memory, self.stored):
            append_marker(data, EndMarker(producer_id, 0, 0, commit), 0, self._now_ms)
        ended = self.open.pop(producer_id, [])
        if not commit:
            self._aborted.update(one.offset for one in ended)

    def _compact(self) -> None:
        list(compaction(self.memory, self.memory.next_offset, self._now_ms, DELETE_RETENTION_MS))
        for work in Compaction(
            self._disk, self.stored.log, self._log_dir.writer, DELETE_RETENTION_MS, self._now_ms
        ).run():
            if work is not None:
                work()

    @property
    def stable_offset(self) -> int:
        """The last stable offset of the model."""
        first = min((records[0].offset for records in self.open.values()), default=self.memory.next_offset)
        return max(first, self.memory.start_offset)

    def committed(self, offset: int) -> list[tuple[int, bytes]]:
        """Return the records that a consumer of committed records sees from an offset on."""
        begin = max(offset, self.memory.start_offset)
        return [
            (one.offset, one.value)
            for one in self.sent
            if begin <= one.offset < self.stable_offset and one.offset not in self._aborted
        ]

    def committed_table(self) -> dict[bytes, bytes]:
        visible = dict(self.committed(0))
        return {one.key: one.value for one in self.sent if one.offset in visible}


def consumed(data: PartitionData, offset: int, max_bytes: int) -> list[Record]:
    """Return the records that Kafka's clients give to a consumer of committed records."""
    found: list[Record] = []
    stable_offset = data.last_stable_offset
    while offset < stable_offset:
        records = data.read(offset, max_bytes, min_one_batch=True, end_offset=stable_offset)
        if not records:
            break
        waiting = data.transactions.aborted_in(offset, data.end_of_read(offset, len(records)))
        waiting.sort(key=lambda one: one.first_offset)
        aborted: set[int] = set()
        for batch in read_batches(records):
            assert isinstance(batch, RecordBatch)
            producer_id = batch.header.producer_id
            while waiting and waiting[0].first_offset <= batch.last_offset:
                aborted.add(waiting.pop(0).producer_id)
            if batch.is_control:
                if any(read_end_marker(record)[0] is ControlType.ABORT for record in batch.records()):
                    aborted.discard(producer_id)
            elif not (batch.is_transactional and producer_id in aborted):
                found += [record for record in batch.records() if record.offset >= offset]
        offset = batch.last_offset + 1
    return found


@settings(max_examples=80)
@given(steps=STEPS, offset=st.integers(0, 30), max_bytes=st.sampled_from([1, 150, 1 << 20]))
def test_a_consumer_sees_committed_records(steps: list[tuple[str, int, int]], offset: int, max_bytes: int) -> None:
    logs = Logs()
    for step in steps:
        logs.run(step)
    for data in (logs.memory, logs.stored):
        assert data.last_stable_offset == logs.stable_offset
        begin = max(offset, data.start_offset)
        assert [(one.offset, one.value) for one in consumed(data, begin, max_bytes)] == logs.committed(offset)


@settings(max_examples=80)
@given(steps=COMPACTED_STEPS)
def test_a_consumer_sees_the_same_table_after_compactions(steps: list[tuple[str, int, int]]) -> None:
    """LF-70: the marker of an aborted transaction goes after its records, and with it what the index has of it."""
    logs = Logs()
    for step in steps:
        logs.run(step)
    for data in (logs.memory, logs.stored):
        assert data.last_stable_offset == logs.stable_offset
        for max_bytes in (1, 1 << 20):
            assert {one.key: one.value for one in consumed(data, 0, max_bytes)} == logs.committed_table()
