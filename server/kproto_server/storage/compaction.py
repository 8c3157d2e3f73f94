"""Compaction: of every key the newest record stays, and what stays keeps its offset (LF-70 to LF-72).

Theory of operation. Only closed segments are touched, and only up to the first offset of a transaction that has not
ended. A first pass notes the newest offset of each key, a second one rewrites the segments, the oldest first. Each gets
its cleaned content by one rename after that content is synced, so that a crash at any moment leaves either. The order
is what makes it safe: a tombstone goes only after everything older than it has.

A tombstone has to be seen by whoever reads the log from its beginning, so it outlives the first pass that finds
nothing older by `delete.retention.ms`: the time when it may go stands in its batch, in place of the first timestamp
(attribute bit 6). The same holds for the markers of transactions, once no record of theirs is left.

Keys are noted by 16 octets of their BLAKE2b hash; Kafka notes MD5. Work is done in small steps; what blocks (syncs) is
yielded, for a thread to do.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.records.control import ControlType, control_type
from kproto.records.record_batch import DELETE_HORIZON, RecordBatch, build_record_batch
from kproto.records.segment import SegmentReader
from kproto_server.storage.kafkas_files import remove_index

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from kproto.records.batches import Batch
    from kproto.records.record import Record
    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.durable_log import DurableLog
    from kproto_server.storage.partition_log import PartitionLog, Segment

    Work = Callable[[], object]

CLEANED_SUFFIX = ".cleaned"
SLICE_SIZE = 64 << 10
DIGEST_SIZE = 16
KEYS_MAX = 500_000
"""Keys noted in one pass, at about 150 bytes each; where there are more, a pass ends sooner."""


class Terms(NamedTuple):
    """What the settings say."""

    delete_retention_ms: int
    """`delete.retention.ms`."""
    min_dirty_ratio: float
    """`min.cleanable.dirty.ratio`."""


class Outcome(NamedTuple):
    """What a compaction has done."""

    first_dirty_offset: int
    """Up to where the log is clean now."""
    size_before: int
    size_after: int


class Compaction:
    """One compaction of one log; `run` is a generator of its steps."""

    def __init__(
        self,
        disk: Disk,
        log: PartitionLog,
        durable: DurableLog[Any],
        terms: Terms,
        now_ms: int,
        *,
        keys_max: int = KEYS_MAX,
    ) -> None:
        self._disk = disk
        self._log = log
        self._durable = durable
        self._terms = terms
        self._now_ms = now_ms
        self._keys_max = keys_max
        self._newest: dict[bytes, int] = {}
        self._aborted: set[int] = set()
        """Base offsets of batches whose transaction was aborted."""
        self._kept: set[int] = set()
        """Producers of whose present transaction something stays."""
        self._end_offset = 0
        """What is at it or after it is left as it is."""
        self.outcome: Outcome | None = None

    def run(self) -> Iterator[Work | None]:
        """Go through all of it; yields None between small steps, and work that blocks, to be done before the next.

        Raises:
            OSError: while iterating: the log is as it was, or some of its segments are clean already.
        """
        log = self._log
        sync = self._durable.begin_sync(log) if log.closed_segments() else None
        if sync is not None:
            yield sync.run
            if not self._durable.end_sync(sync):
                return
        # Recovery looks at nothing below the recovery point: it would miss in a segment what compaction took out.
        self._end_offset = min(log.base_offset, log.synced.offset)
        closed = log.closed_segments()
        while closed and closed[-1].base_offset >= self._end_offset:
            closed.pop()
        if not closed:
            return
        yield lambda: self._durable.points.note({(log.topic, log.partition): log.synced})
        before = sum(segment.size for segment in closed)
        yield from self._note_keys(closed)
        after = 0
        for segment in closed:
            if segment.base_offset >= self._end_offset:
                after += segment.size
                continue
            size = yield from self._clean(segment)
            after += size
        self.outcome = Outcome(self._end_offset, before, after)

    # The first pass.

    def _note_keys(self, closed: list[Segment]) -> Iterator[Work | None]:
        open_transactions: dict[int, list[int]] = {}
        for segment in closed:
            for batch in self._batches(segment):
                if batch is None:
                    yield None
                    continue
                if len(self._newest) > self._keys_max:
                    self._end_offset = batch_base(batch)
                    return
                if isinstance(batch, RecordBatch) and batch.is_transactional:
                    self._note_transaction(batch, open_transactions)
                elif not batch.is_control:
                    self._note(batch.records())
        for bases in open_transactions.values():
            self._end_offset = min(self._end_offset, *bases)

    def _note_transaction(self, batch: RecordBatch, open_transactions: dict[int, list[int]]) -> None:
        """Records of a transaction count as if they were not its (LF-71), unless it was aborted."""
        producer_id = batch.header.producer_id
        if not batch.is_control:
            open_transactions.setdefault(producer_id, []).append(batch.base_offset)
            return
        bases = open_transactions.pop(producer_id, [])
        if _is_abort(batch):
            self._aborted.update(bases)

    def _note(self, records: list[Record]) -> None:
        for record in records:
            if record.key is not None:
                self._newest[_digest(record.key)] = record.offset

    # The second pass.

    def _clean(self, segment: Segment) -> Generator[Work | None, None, int]:
        """Rewrite a segment; return its size."""
        disk, log = self._disk, self._log
        beside = segment.path + CLEANED_SUFFIX
        file = disk.open(beside, create=True)
        try:
            file.truncate(0)
            changed, size = yield from self._rewrite(segment, file)
            if changed and size:
                yield file.sync
        except OSError:
            disk.remove(beside)
            raise
        finally:
            file.close()
        if not changed:
            disk.remove(beside)
            return segment.size
        if size:
            disk.rename(beside, segment.path)
        else:
            disk.remove(beside)
            disk.remove(segment.path)
            remove_index(disk, segment.path)
        log.replace_closed(segment, size)
        yield lambda: disk.sync_directory(log.directory)
        return size

    def _rewrite(self, segment: Segment, file: File) -> Generator[Work | None, None, tuple[bool, int]]:
        """Write what stays of a segment; return whether that is less than there was, and its size."""
        changed = False
        size = 0
        for batch in self._batches(segment):
            if batch is None:
                yield None
                continue
            encoded = self._what_stays(batch)
            if encoded is None:
                encoded = batch.encode() if isinstance(batch, RecordBatch) else self._octets
            else:
                changed = True
            if encoded:
                file.write_at(size, encoded)
                size += len(encoded)
        return changed, size

    def _what_stays(self, batch: Batch) -> bytes | None:
        """Return what a batch becomes: nothing, or less, or something else; None: it stays as it is."""
        if batch_base(batch) >= self._end_offset:
            return None
        if not isinstance(batch, RecordBatch):
            records = batch.records()
            return None if any(self._is_newest(record) for record in records) else b""
        producer_id = batch.header.producer_id
        if batch.is_control:
            has_records = producer_id in self._kept
            self._kept.discard(producer_id)
            return None if has_records else self._with_horizon(batch, batch.records())
        if batch.base_offset in self._aborted:
            return b""
        records = batch.records()
        stays = [record for record in records if self._is_newest(record)]
        horizon_ms = batch.delete_horizon_ms
        if horizon_ms is not None and horizon_ms <= self._now_ms:
            stays = [record for record in stays if record.value is not None]
        if batch.is_transactional and stays:
            self._kept.add(producer_id)
        if any(record.value is None for record in stays) and horizon_ms is None:
            return self._rebuilt(batch, stays, self._now_ms + self._terms.delete_retention_ms)
        if len(stays) == len(records):
            return None
        return self._rebuilt(batch, stays, horizon_ms) if stays else b""

    def _is_newest(self, record: Record) -> bool:
        if record.key is None:
            return True
        return self._newest.get(_digest(record.key), record.offset) <= record.offset

    def _with_horizon(self, marker: RecordBatch, records: list[Record]) -> bytes | None:
        """A marker without records goes some time after they have (LF-71)."""
        horizon_ms = marker.delete_horizon_ms
        if horizon_ms is None:
            return self._rebuilt(marker, records, self._now_ms + self._terms.delete_retention_ms)
        return b"" if horizon_ms <= self._now_ms else None

    def _rebuilt(self, batch: RecordBatch, records: list[Record], horizon_ms: int | None) -> bytes:
        """Return a batch with fewer records, or with the time when its tombstones may go; its offsets stay."""
        header = batch.header
        flags = header.attributes & ~0b111
        return build_record_batch(
            records,
            base_offset=header.base_offset,
            last_offset=batch.last_offset,
            base_timestamp=header.base_timestamp if horizon_ms is None else horizon_ms,
            max_timestamp=max(record.timestamp for record in records),
            partition_leader_epoch=header.partition_leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            compression=batch.compression,
            flags=flags if horizon_ms is None else flags | DELETE_HORIZON,
        )

    def _batches(self, segment: Segment) -> Iterator[Batch | None]:
        """Yield the batches of a segment, and None after each slice of it. `_octets` are those of the last one."""
        reader = SegmentReader()
        file = self._disk.open(segment.path)
        try:
            position = 0
            while position < segment.size:
                data = file.read_at(position, min(max(SLICE_SIZE, reader.missing), segment.size - position))
                position += len(data)
                reader.feed(data)
                while (placed := reader.next_batch()) is not None:
                    if not isinstance(placed.batch, RecordBatch):
                        self._octets = file.read_at(placed.position, placed.batch.size)
                    yield placed.batch
                yield None
        finally:
            file.close()

    _octets: bytes = b""


def batch_base(batch: Batch) -> int:
    """Return the first offset of a batch."""
    return batch.base_offset if isinstance(batch, RecordBatch) else batch.records()[0].offset


def _is_abort(marker: RecordBatch) -> bool:
    return any(control_type(record.key) == ControlType.ABORT for record in marker.records())


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=DIGEST_SIZE).digest()
