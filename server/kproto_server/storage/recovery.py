"""Opening one partition's log: leftovers removed, the end found, what the journal has put back (LF-60 to LF-64).

Theory of operation. Below its recovery point a log is on the disk, and is not looked at: whoever loads it sees its
checksums. From there on, batch after batch is checked, up to the first that is not good. What a crash may leave there
is the beginning of a batch, or zeros, behind the last whole one, at the end of the newest segment: it is cut off, and
said. Where the power failed, anything of what was not synced may be missing, in any order. With a journal that is no
harm: what was acknowledged stands there, and takes the place of what is broken and of all behind it; what does not was
never acknowledged. Without one, anything else than a torn end is damage, which is refused: cutting it off would lose
what was acknowledged, and only a user can want that (``repair``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.records.segment_files import LEADER_EPOCHS, LOG_SUFFIX, segment_base_offset, segment_name
from kproto_server.storage.checkpoints import LogPosition, read_epoch_checkpoint, write_epoch_checkpoint
from kproto_server.storage.disk import read_all, replace_file
from kproto_server.storage.errors import corrupt_segment
from kproto_server.storage.interrupted_compaction import finish_compaction
from kproto_server.storage.kafka_files import add_index, remove_derived_files, remove_index
from kproto_server.storage.log_scan import SLICE_SIZE, LogScan, torn_tail
from kproto_server.storage.partition_log import PartitionLog, Segment
from kproto_server.storage.segment_sync import START

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.storage.checkpoints import EpochStarts
    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.log_scan import ValidEnd
    from kproto_server.storage.write_ahead_log_reader import LoggedBatch


class RecoveryInputs(NamedTuple):
    """What is known of a log before it is looked at."""

    end: LogPosition | None = None
    """Where it ends, after an orderly end."""
    synced: LogPosition = START
    """The recovery point."""
    logged_batches: Sequence[LoggedBatch] = ()
    """Its batches in the journal, in their order."""
    has_wal: bool = False
    """Whether all that was acknowledged is synced or in the journal."""
    was_used_by_kafka: bool = False
    """Whether a real broker has written it."""


NO_INPUTS = RecoveryInputs()


class _Found(NamedTuple):
    """What was found of a log."""

    segments: list[Segment]
    next_offset: int
    synced: LogPosition
    unsynced: list[str]
    """Paths of segments with something that may not be on the disk, from there on."""
    epochs: EpochStarts


class Recovery:
    """Opens logs, and tells what it found in `report`."""

    def __init__(self, disk: Disk, *, segment_bytes: int, repair: bool) -> None:
        self._disk = disk
        self._segment_bytes = segment_bytes
        self._repair = repair
        self.report: list[str] = []

    def open(self, topic: str, partition: int, known: RecoveryInputs = NO_INPUTS) -> PartitionLog:
        """Open a log; make it, if there is none.

        Raises:
            CorruptLog: it is damaged, and ``repair`` was not asked for.
            OSError: it can't be read or written.
        """
        disk, directory = self._disk, f"{topic}-{partition}"
        disk.make_directory(directory)
        finish_compaction(disk, directory)
        segments = self._segments(directory)
        is_orderly = known.end is not None and _is_end(known.end, segments)
        if segments and not is_orderly:
            disk.sync_directory(directory)  # what an earlier start removed must not come back among what is new
        epochs_path = f"{directory}/{LEADER_EPOCHS}"
        epochs = read_epoch_checkpoint(read_all(disk, epochs_path)) if disk.exists(epochs_path) else []
        synced = known.end if known.end is not None and is_orderly else known.synced
        pending = [batch for batch in known.logged_batches if batch.next_offset > synced.offset]
        if self._repair or (segments and not epochs):
            synced = START
        found = self._scanned(segments, pending, synced, known, is_orderly=is_orderly)
        remove_derived_files(disk, directory)
        if not found.segments:
            add_index(disk, f"{directory}/{segment_name(found.next_offset)}")
        log = PartitionLog(
            disk,
            topic,
            partition,
            closed=found.segments[:-1],
            active=found.segments[-1] if found.segments else None,
            next_offset=found.next_offset,
            epoch=self._keep_epochs(epochs_path, epochs, found),
            segment_bytes=self._segment_bytes,
            synced=found.synced,
            unsynced=found.unsynced,
        )
        self._replay(log, pending)
        return log

    def _segments(self, directory: str) -> list[Segment]:
        disk = self._disk
        bases = sorted(base for name in disk.names(directory) if (base := segment_base_offset(name)) is not None)
        found = []
        for base in bases:
            path = f"{directory}/{base:020}{LOG_SUFFIX}"
            segment = Segment(base, path, disk.size_of(path), is_active=base == bases[-1])
            if segment.size or segment.is_active:
                found.append(segment)
            else:  # begun, and given up
                self._remove([segment])
        return found

    def _keep_epochs(self, path: str, epochs: EpochStarts, found: _Found) -> int:
        """Return the newest leader epoch; have the checkpoint tell those that the log has, and no others (LF-53)."""
        start_offset = found.segments[0].base_offset if found.segments else 0
        kept = [(epoch, start) for epoch, start in epochs or found.epochs if start <= found.next_offset]
        kept = kept or [(0, start_offset)]
        if kept != epochs:
            replace_file(self._disk, path, write_epoch_checkpoint(kept))
        return kept[-1][0]

    def _scanned(
        self,
        segments: list[Segment],
        pending: Sequence[LoggedBatch],
        synced: LogPosition,
        known: RecoveryInputs,
        *,
        is_orderly: bool,
    ) -> _Found:
        """Find the log's valid end, and cut off what is behind it."""
        if segments and pending and pending[0].base_offset < segments[0].base_offset > synced.offset:
            size = sum(segment.size for segment in segments)
            self.report.append(f"{segments[0].path}: {size} bytes have lost what was before; the journal has that")
            self._remove(segments)
            segments = []
        first, begin = self._start(segments, synced)
        position = begin.position
        scan = LogScan(begin.offset, {batch.base_offset: batch.crc for batch in pending})
        unsynced: list[str] = []
        for number, segment in enumerate(segments[first:], first):
            file = self._disk.open(segment.path)
            try:
                end = scan.segment(file, segment.size, segment.base_offset, position)
                if not is_orderly or segment.size > position or number > first:
                    unsynced.append(segment.path)
                if not (is_orderly or known.was_used_by_kafka):
                    _write_again(file, position, end.position)
                position = 0
                later = segments[number + 1 :]
                lost = _lost_behind(end, later, pending)
                if end.problem is None and not lost:
                    continue
                torn = (
                    None if any(one.size for one in later) else torn_tail(file, segment.size, segment.base_offset, end)
                )
                self._judge(segment, end, later, pending, torn, has_wal=known.has_wal)
                self._remove(later)
                file.truncate(end.position)
                file.sync()
            finally:
                file.close()
            cut = segment._replace(size=end.position, is_active=True)
            return _Found([*segments[:number], cut], end.next_offset, begin, unsynced, scan.epochs)
        if len(segments) > 1 and not segments[-1].size and segments[-1].base_offset < scan.next_offset:
            self._remove(segments[-1:])  # begun, and given up
            unsynced = [path for path in unsynced if path != segments[-1].path]
            segments = [*segments[:-2], segments[-2]._replace(is_active=True)]
        return _Found(segments, scan.next_offset, begin, unsynced, scan.epochs)

    def _start(self, segments: list[Segment], synced: LogPosition) -> tuple[int, LogPosition]:
        """Return where to begin, and the number of that segment: where all before is on the disk."""
        first = 0
        last_base = synced.base_offset if synced.base_offset >= 0 else synced.offset
        for number, segment in enumerate(segments):
            if segment.base_offset == synced.base_offset and self._is_place(segment, synced):
                return number, synced
            if segment.base_offset <= last_base:
                first = number
        base_offset = segments[first].base_offset if segments else synced.offset
        return first, LogPosition(base_offset, base_offset, 0)

    def _is_place(self, segment: Segment, synced: LogPosition) -> bool:
        """Whether the recovery point is where it says; not, if the segment was removed and made anew meanwhile."""
        if synced.position == 0 or synced.position > segment.size:
            return False
        if synced.position == segment.size:
            return True
        file = self._disk.open(segment.path)
        try:
            return file.read_at(synced.position, 8) == synced.offset.to_bytes(8, "big")
        finally:
            file.close()

    def _remove(self, segments: list[Segment]) -> None:
        """Remove the last segments of a log, the newest first: there is never a gap."""
        for segment in reversed(segments):
            self._disk.remove(segment.path)
            remove_index(self._disk, segment.path)
        if segments:
            self._disk.sync_directory(segments[0].path.rpartition("/")[0])

    def _judge(
        self,
        segment: Segment,
        end: ValidEnd,
        later: list[Segment],
        pending: Sequence[LoggedBatch],
        torn: str | None,
        *,
        has_wal: bool,
    ) -> None:
        """Say what becomes of what stands behind the last good batch.

        Raises:
            CorruptLog: it is no torn write, there is no journal to tell, and nobody asked to repair it.
        """
        place = f"{segment.path} at byte {end.position}"
        size = segment.size - end.position + sum(one.size for one in later)
        if any(batch.base_offset <= end.next_offset < batch.next_offset for batch in pending):
            self.report.append(f"{place}: {size} bytes are not what was acknowledged; the journal has that")
        elif torn is not None:
            self.report.append(f"{place}: dropped {size} bytes {torn}")
        elif has_wal:
            self.report.append(f"{place}: dropped {size} bytes that were never acknowledged ({end.problem})")
        elif not self._repair:
            raise corrupt_segment(segment.path, end.position, end.problem or "")
        else:
            self.report.append(
                f"{place}: {end.problem}; repaired: the log ends with offset {end.next_offset - 1} now, {size} bytes "
                f"are lost"
            )

    def _replay(self, log: PartitionLog, pending: Sequence[LoggedBatch]) -> None:
        """Append what the journal has and the segments have not.

        Raises:
            CorruptLog: there is a gap between them.
        """
        count = 0
        for batch in pending:
            if batch.next_offset <= log.next_offset:
                continue
            if batch.base_offset != log.next_offset:
                if not self._repair:
                    reason = f"it ends before offset {log.next_offset}, and the journal goes on at {batch.base_offset}"
                    raise corrupt_segment(log.active_path, log.size, reason)
                self.report.append(
                    f"{log.active_path}: repaired: offsets from {log.next_offset} on are lost, with those that the "
                    f"journal has from {batch.base_offset} on"
                )
                break
            log.append(batch.batch, batch.next_offset - batch.base_offset)
            count += 1
        if count:
            log.write()
            self.report.append(f"{log.directory}: {count} batches came from the journal")


def _write_again(file: File, start: int, end: int) -> None:
    """Have what stands there be written when the file is synced.

    After a sync that failed the operating system may take for written what is not; to sync it once more does nothing.
    """
    for position in range(start, end, SLICE_SIZE):
        file.write_at(position, file.read_at(position, min(SLICE_SIZE, end - position)))


def _is_end(end: LogPosition, segments: list[Segment]) -> bool:
    """Whether a log is as it was left at an orderly end."""
    return bool(segments) and (end.base_offset, end.position) == (segments[-1].base_offset, segments[-1].size)


def _lost_behind(end: ValidEnd, later: list[Segment], pending: Sequence[LoggedBatch]) -> bool:
    """Whether the journal has batches that should stand between this segment's last one and the next segment.

    Gaps alone mean nothing: compaction leaves some.
    """
    return bool(later) and any(end.next_offset <= batch.base_offset < later[0].base_offset for batch in pending)
