"""Opening one partition's log: leftovers removed, the end found, what the journal has put back (LF-60 to LF-64).

Theory of operation. A crash leaves at most the beginning of a batch behind the last whole one, at the end of the newest
segment: it is cut off, and said. Where the power failed, more may be missing or torn of what was not synced, and the
journal has all of that; what it has of the batch that should stand at the broken place, and of all that follow, takes
their place. Anything else is damage, which is refused: cutting it off would lose what was acknowledged, and only a user
can want that (``repair``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.segment import torn_beginning, whole_batch_within
from kproto.records.segment_files import LEADER_EPOCHS, LOG_SUFFIX, segment_base_offset
from kproto_server.storage.checkpoints import FIRST_EPOCH, newest_epoch
from kproto_server.storage.disk import read_all, replace_file
from kproto_server.storage.errors import CorruptLog
from kproto_server.storage.kafkas_files import forget_derived
from kproto_server.storage.partition_log import PartitionLog, Segment
from kproto_server.storage.scan import valid_end

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.storage.disk import Disk
    from kproto_server.storage.journal import Journaled
    from kproto_server.storage.scan import End

REMOVED_SUFFIXES = (".deleted", ".cleaned")
SWAP_SUFFIX = ".swap"
TORN_SIZE_MAX = 1 << 20
"""Octets that are looked through for a whole batch: as large as a torn write may be is beyond any commit."""


def finish_compaction(disk: Disk, directory: str) -> None:
    """Do what an interrupted compaction, or removal, has left to do (LF-63)."""
    names = disk.names(directory)
    cleaned = [name for name in names if name.endswith(".cleaned")]
    for name in names:
        if name.endswith(REMOVED_SUFFIXES):
            disk.remove(f"{directory}/{name}")
    lowest = min(cleaned, default=None)
    for name in names:
        if name.endswith(SWAP_SUFFIX):
            final = name.removesuffix(SWAP_SUFFIX)
            if lowest is not None and lowest <= f"{final}.cleaned":
                disk.remove(f"{directory}/{name}")
            else:
                disk.rename(f"{directory}/{name}", f"{directory}/{final}")
    if any(name.endswith((*REMOVED_SUFFIXES, SWAP_SUFFIX)) for name in names):
        disk.sync_directory(directory)


class Recovery:
    """Opens logs, and tells what it found in `report`."""

    def __init__(self, disk: Disk, *, segment_bytes: int, repair: bool) -> None:
        self._disk = disk
        self._segment_bytes = segment_bytes
        self._repair = repair
        self.report: list[str] = []

    def open(
        self,
        topic: str,
        partition: int,
        journaled: Iterable[Journaled] = (),
        *,
        known_end: tuple[int, int] | None = None,
        recovery_point: int = 0,
    ) -> PartitionLog:
        """Open a log.

        Args:
            journaled: its batches in the journal, in their order.
            known_end: size of the newest segment and the log's next offset, from an orderly end: nothing is looked at.
            recovery_point: segments that end below this offset were synced, and are not looked at.

        Raises:
            CorruptLog: it is damaged, and ``repair`` was not asked for.
            OSError: it can't be read or written.
        """
        disk, directory = self._disk, f"{topic}-{partition}"
        disk.make_directory(directory)
        finish_compaction(disk, directory)
        segments = self._segments(directory)
        epoch = self._epoch(directory)
        pending = list(journaled)
        next_offset = segments[0].base_offset if segments else 0
        if known_end is not None and segments and known_end[0] == segments[-1].size:
            next_offset = known_end[1]
        else:
            segments, next_offset = self._scanned(segments, pending, recovery_point)
        forget_derived(disk, directory)
        log = PartitionLog(
            disk,
            topic,
            partition,
            closed=segments[:-1],
            active=segments[-1] if segments else None,
            next_offset=next_offset,
            epoch=epoch,
            segment_bytes=self._segment_bytes,
        )
        self._replay(log, pending)
        return log

    def _segments(self, directory: str) -> list[Segment]:
        disk = self._disk
        bases = sorted(base for name in disk.names(directory) if (base := segment_base_offset(name)) is not None)
        found = []
        for base in bases:
            path = f"{directory}/{base:020}{LOG_SUFFIX}"
            found.append(Segment(base, path, disk.size_of(path), is_active=base == bases[-1]))
        return found

    def _epoch(self, directory: str) -> int:
        path = f"{directory}/{LEADER_EPOCHS}"
        epoch = newest_epoch(read_all(self._disk, path)) if self._disk.exists(path) else -1
        if epoch < 0:
            replace_file(self._disk, path, FIRST_EPOCH)
        return max(epoch, 0)

    def _scanned(
        self, segments: list[Segment], pending: list[Journaled], recovery_point: int
    ) -> tuple[list[Segment], int]:
        """Return the segments up to the log's valid end, and the offset that comes next."""
        next_offset = segments[0].base_offset if segments else 0
        for number, segment in enumerate(segments):
            following = segments[number + 1].base_offset if number + 1 < len(segments) else None
            if following is not None and following <= recovery_point:
                next_offset = following
                continue
            next_offset = max(next_offset, segment.base_offset)
            file = self._disk.open(segment.path)
            try:
                end = valid_end(file, segment.size, segment.base_offset, next_offset)
                if end.problem is None:
                    next_offset = end.next_offset
                    continue
                rest = file.read_at(end.position, TORN_SIZE_MAX)
                self._judge(segment, end, rest, pending, is_last=following is None)
                file.truncate(end.position)
                file.sync()
            finally:
                file.close()
            for later in segments[number + 1 :]:
                self.report.append(f"{later.path}: {later.size} bytes behind the damage are dropped")
                self._disk.remove(later.path)
            left = [*segments[:number], segment._replace(size=end.position, is_active=True)]
            return left, end.next_offset
        return segments, next_offset

    def _judge(self, segment: Segment, end: End, rest: bytes, pending: list[Journaled], *, is_last: bool) -> None:
        """Say what becomes of what stands behind the last good batch.

        Raises:
            CorruptLog: it is no torn write, the journal does not have it, and nobody asked to repair it.
        """
        dropped = segment.size - end.position
        place = f"{segment.path} at byte {end.position}"
        if any(batch.base_offset <= end.next_offset < batch.next_offset for batch in pending):
            self.report.append(f"{place}: {dropped} bytes did not reach the disk whole; the journal has them")
            return
        zeros = not any(rest) and dropped <= len(rest)
        torn = torn_beginning(rest, segment.base_offset, end.next_offset) and (
            whole_batch_within(rest, end.next_offset) is None
        )
        if is_last and (zeros or torn):
            what = "zeros" if zeros else "the beginning of a batch that was not written to its end"
            self.report.append(f"{place}: dropped {dropped} bytes, {what}")
            return
        if not self._repair:
            raise CorruptLog(segment.path, end.position, end.problem or "")
        self.report.append(f"{place}: {end.problem}; repaired by dropping {dropped} bytes")

    def _replay(self, log: PartitionLog, pending: list[Journaled]) -> None:
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
                    raise CorruptLog(log.active_path, log.size, reason)
                self.report.append(f"{log.active_path}: offsets from {log.next_offset} on are lost")
                break
            log.append(batch.batch, batch.next_offset - batch.base_offset)
            count += 1
        if count:
            log.write()
            self.report.append(f"{log.directory}: {count} batches came from the journal")
