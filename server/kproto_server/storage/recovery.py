"""Recovery: open the log of one partition, truncate an invalid tail, restore batches from the write-ahead log."""

# Theory of operation. A log is segments, a segment is batches back to back, and batches are only ever appended to the
# newest segment. So everything that a crash can damage lies after the *recovery point*, the position up to which the
# log is known to be durable. Recovery reads nothing before it (the loader checks those checksums when it reads the
# values) and checks every batch after it: whole, with the right checksum, with rising offsets (`LogScan`). The first
# batch that fails this check ends the valid part of the log. The rest, the *tail*, has one of these causes. The first
# case that matches decides:
#
# 1. The write-ahead log has a batch for the place. The power failed, and unsynced blocks reach the disk in any order or
#    not at all. The tail is truncated, and the batches are restored from the write-ahead log.
# 2. The tail is zeros or the beginning of one batch, in the newest segment. The process or the machine stopped during
#    the last write (a file can grow before its content is written: zeros). The tail is truncated.
# 3. There is a write-ahead log, and it has nothing for the place. The power failed while a batch was written that is
#    larger than the write-ahead log, and was never acknowledged. The tail is truncated.
# 4. Anything else: the disk is damaged, or the power failed in ``os`` mode. The tail can contain acknowledged batches,
#    so the log is refused (`CorruptLog`), unless the user asks for ``repair``, which truncates.
#
# Case 3 is safe because of one invariant: in ``fsync`` mode every acknowledged batch is below the recovery point or in
# the write-ahead log.
#
# Order of the durable steps, for a crash during recovery itself:
#
# 1. `LogDir` syncs the write-ahead log: its last frame may be in the memory of the operating system only.
# 2. Leftovers of an interrupted compaction are finished, so that each offset is in one segment.
# 3. Segments are removed from the newest to the oldest, so that a crash leaves a shorter log and never a gap.
# 4. A truncated segment is synced before anything is appended. Otherwise the old tail could reappear after a power
#    loss, behind new batches.
# 5. Restored batches are appended. `LogDir` syncs them before it begins a new write-ahead log, so the old one is
#    complete until nothing needs it.
#
# Every step can be repeated: recovery of a recovered log changes nothing.

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.records.segment_files import LEADER_EPOCHS, LOG_SUFFIX, segment_base_offset, segment_name
from kproto_server.storage.checkpoints import LogPosition, read_epoch_checkpoint, write_epoch_checkpoint
from kproto_server.storage.disk import directory_of, read_all, replace_file, require_directory, require_file
from kproto_server.storage.errors import corrupt_segment
from kproto_server.storage.interrupted_compaction import finish_compaction
from kproto_server.storage.kafka_files import add_index, remove_derived_files, remove_index
from kproto_server.storage.log_scan import SLICE_SIZE_BYTES, LogScan, torn_tail
from kproto_server.storage.partition_log import PartitionLog, Segment
from kproto_server.storage.segment_sync import LOG_START

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.storage.checkpoints import EpochStarts
    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.log_scan import ScanResult
    from kproto_server.storage.open_segments import OpenSegments
    from kproto_server.storage.write_ahead_log_reader import LoggedBatch


class RecoveryInputs(NamedTuple):
    """What the data directory knows of a log before recovery reads it."""

    clean_end: LogPosition | None = None
    """The end of the log at the last clean shutdown; None after a crash."""
    recovery_point: LogPosition = LOG_START
    logged_batches: Sequence[LoggedBatch] = ()
    """The log's batches in the write-ahead log, in written order."""
    has_wal: bool = False
    """Whether every acknowledged batch is below the recovery point or in ``logged_batches``."""
    was_used_by_kafka: bool = False
    """Whether a real broker wrote the log since kproto did."""


NO_INPUTS = RecoveryInputs()


class _RecoveredLog(NamedTuple):
    """The valid part of a log."""

    segments: list[Segment]
    next_offset: int
    scan_start: LogPosition
    """Where the scan began: everything before is durable."""
    unsynced_paths: list[str]
    """Paths of segments with content after ``scan_start`` that may not be durable."""
    epochs: EpochStarts


class Recovery:
    """Opens the logs of a data directory; `report` has one line for each thing that was truncated or restored."""

    def __init__(self, disk: Disk, *, segment_bytes: int, repair: bool, open_segments: OpenSegments) -> None:
        self._disk = disk
        self._open_segments = open_segments
        self._segment_bytes = segment_bytes
        self._repair = repair
        self.report: list[str] = []

    def open(self, topic: str, partition: int, inputs: RecoveryInputs = NO_INPUTS) -> PartitionLog:
        """Open a log, or create it. The caller owns the log and closes it.

        Raises:
            CorruptLog: the log is damaged, and ``repair`` is False.
            OSError: a file cannot be read or written.
        """
        disk, directory = self._disk, f"{topic}-{partition}"
        require_directory(disk, directory)
        disk.make_directory(directory)
        # First of all: until then several files can have the same offsets.
        self.report += finish_compaction(disk, directory, repair=self._repair)
        segments = self._list_segments(directory)
        # The marker names the end of the newest segment. If the log ends elsewhere, a program that does not remove the
        # marker has changed the files, and the log is recovered as after a crash.
        is_clean = inputs.clean_end is not None and _is_at_end(inputs.clean_end, segments)
        if segments and not is_clean:
            # An earlier start may have removed segments and stopped before its sync. Without this sync a power loss
            # could bring those segments back after new batches with the same offsets were acknowledged.
            disk.sync_directory(directory)
        epochs_path = f"{directory}/{LEADER_EPOCHS}"
        epochs = read_epoch_checkpoint(read_all(disk, epochs_path)) if disk.exists(epochs_path) else []
        recovery_point = inputs.clean_end if inputs.clean_end is not None and is_clean else inputs.recovery_point
        # The write-ahead log also has batches whose segments are durable: a cycle is dropped as a whole.
        logged = [batch for batch in inputs.logged_batches if batch.next_offset > recovery_point.offset]
        if self._repair or (segments and not epochs):
            # Repair checks all batches. Without the checkpoint the epochs come from the headers of all batches.
            recovery_point = LOG_START
        recovered = self._recover(segments, logged, recovery_point, inputs, is_clean=is_clean)
        # A real broker trusts an index of a segment, and kproto changes segments: each gets an empty one.
        remove_derived_files(disk, directory)
        if not recovered.segments:
            # The first append creates this segment, and a broker complains of a segment without an index.
            add_index(disk, f"{directory}/{segment_name(recovered.next_offset)}")
        log = PartitionLog(
            disk,
            topic,
            partition,
            closed=recovered.segments[:-1],
            active=recovered.segments[-1] if recovered.segments else None,
            next_offset=recovered.next_offset,
            epoch=self._save_epochs(epochs_path, epochs, recovered, logged),
            segment_bytes=self._segment_bytes,
            recovery_point=recovered.scan_start,
            unsynced_paths=recovered.unsynced_paths,
            open_segments=self._open_segments,
        )
        # Last: the batches are appended to the truncated log, and are dirty until the next sync.
        self._restore(log, logged)
        return log

    def _list_segments(self, directory: str) -> list[Segment]:
        """Return the segments, oldest first; remove closed segments without content.

        The oldest stays: compaction empties it, and the log begins with its base offset.
        """
        disk = self._disk
        bases = sorted(base for name in disk.names(directory) if (base := segment_base_offset(name)) is not None)
        segments = []
        for base in bases:
            path = f"{directory}/{base:020}{LOG_SUFFIX}"
            require_file(disk, path)
            segment = Segment(base, path, disk.size_of(path), is_active=base == bases[-1])
            if segment.size or segment.is_active or base == bases[0]:
                segments.append(segment)
            else:
                # A roll created the file and failed before the first batch; a later roll took another base offset.
                self._remove([segment])
        return segments

    def _save_epochs(
        self, path: str, epochs: EpochStarts, recovered: _RecoveredLog, logged: Sequence[LoggedBatch]
    ) -> int:
        """Let the newest epoch of the checkpoint begin at the end of the log at the latest; return it (LF-53).

        A lower epoch would be refused where a batch of another log has this one: the marker of a transaction has the
        epoch of its coordinator. The log ends behind the batches that `_restore` appends.
        """
        start_offset = recovered.segments[0].base_offset if recovered.segments else 0
        found, end_offset = list(epochs or recovered.epochs), recovered.next_offset
        for batch in logged:
            if batch.base_offset == end_offset:
                end_offset = batch.next_offset
                if not epochs and (not found or batch.epoch > found[-1][0]):
                    found.append((batch.epoch, batch.base_offset))
        kept = [(epoch, start) for epoch, start in found if start < end_offset]
        if len(kept) < len(found):
            kept.append((found[-1][0], end_offset))
        kept = kept or [(0, start_offset)]
        if kept != epochs:
            replace_file(self._disk, path, write_epoch_checkpoint(kept))
        return kept[-1][0]

    def _recover(
        self,
        segments: list[Segment],
        logged: Sequence[LoggedBatch],
        recovery_point: LogPosition,
        inputs: RecoveryInputs,
        *,
        is_clean: bool,
    ) -> _RecoveredLog:
        """Scan the segments from the recovery point on, and truncate the log at the end of its valid part."""
        if segments and logged and logged[0].base_offset < segments[0].base_offset > recovery_point.offset:
            # Power loss: the file of the first segment never got its name on disk, and the names of later segments
            # did. All offsets from the recovery point on are in the write-ahead log.
            size = sum(segment.size for segment in segments)
            self.report.append(
                f"{segments[0].path}: removed {size} bytes, the batches before them are missing; the write-ahead log "
                f"has all of them"
            )
            self._remove(segments)
            segments = []
        first, scan_start = self._scan_start(segments, recovery_point)
        position = scan_start.position
        # A whole batch with a logged offset must be the logged batch: it can also be a batch of a failed write, which
        # was truncated, but not durably, before the acknowledged batch got its offset.
        scan = LogScan(scan_start.offset, {batch.base_offset: batch.crc for batch in logged})
        unsynced_paths: list[str] = []
        for index, segment in enumerate(segments[first:], first):
            file = self._disk.open(segment.path)
            try:
                result = scan.segment(file, segment.size, segment.base_offset, position)
                # Valid content after the recovery point may be only in the memory of the operating system. The next
                # sync has to cover it, and with it everything that recovery appends.
                if not is_clean or segment.size > position or index > first:
                    unsynced_paths.append(segment.path)
                if not (is_clean or inputs.was_used_by_kafka):
                    _rewrite(file, position, result.position)
                position = 0  # of the next segment
                later = segments[index + 1 :]
                if result.problem is None and not _has_lost_its_end(result, later, logged):
                    continue
                # A crash tears only the last write of a log: in a segment with content after it, the same bytes are
                # damage.
                torn = None
                if not any(one.size for one in later):
                    torn = torn_tail(file, segment.size, segment.base_offset, result)
                self._report_tail(segment, result, later, logged, torn, has_wal=inputs.has_wal)
                # Later segments go first: a crash in between leaves the invalid tail, which the next start finds again.
                # With the tail truncated first, that start could take a later segment for the continuation of the log.
                self._remove(later)
                file.truncate(result.position)
                file.sync()
            finally:
                file.close()
            newest = segment._replace(size=result.position, is_active=True)
            return _RecoveredLog(
                [*segments[:index], newest], result.next_offset, scan_start, unsynced_paths, scan.epochs
            )
        if len(segments) > 1 and not segments[-1].size and segments[-1].base_offset < scan.next_offset:
            # A roll created the newest file and failed, and the log went on in the segment before. Its name is lower
            # than the next offset, so the segment cannot become the active one.
            self._remove(segments[-1:])
            unsynced_paths = [path for path in unsynced_paths if path != segments[-1].path]
            segments = [*segments[:-2], segments[-2]._replace(is_active=True)]
        return _RecoveredLog(segments, scan.next_offset, scan_start, unsynced_paths, scan.epochs)

    def _scan_start(self, segments: list[Segment], recovery_point: LogPosition) -> tuple[int, LogPosition]:
        """Return the index of the first segment to scan, and the position in it: the recovery point if it is valid.

        Otherwise the scan begins at the segment that contains the offset of the recovery point.
        """
        first = 0
        # A real broker's recovery point has an offset and no position.
        last_base = recovery_point.base_offset if recovery_point.base_offset >= 0 else recovery_point.offset
        for index, segment in enumerate(segments):
            if segment.base_offset == recovery_point.base_offset and self._is_valid(segment, recovery_point):
                return index, recovery_point
            if segment.base_offset <= last_base:
                first = index
        # The segment of the recovery point has other content, or is gone: scan from the beginning of the segment that
        # has its offset, all segments before which are durable.
        base_offset = segments[first].base_offset if segments else recovery_point.offset
        return first, LogPosition(base_offset, base_offset, 0)

    def _is_valid(self, segment: Segment, recovery_point: LogPosition) -> bool:
        """Return whether a batch with the offset of the recovery point begins at its position.

        Compaction, or deleting and creating the topic, gives the segment of this name other content.
        """
        if recovery_point.position == 0 or recovery_point.position > segment.size:
            return False
        if recovery_point.position == segment.size:
            return True
        file = self._disk.open(segment.path)
        try:
            return file.read_at(recovery_point.position, 8) == recovery_point.offset.to_bytes(8, "big")
        finally:
            file.close()

    def _remove(self, segments: list[Segment]) -> None:
        """Remove the newest segments of a log, the newest of all first: a crash never leaves a gap."""
        for segment in reversed(segments):
            self._disk.remove(segment.path)
            remove_index(self._disk, segment.path)
        if segments:
            self._disk.sync_directory(directory_of(segments[0].path))

    def _report_tail(
        self,
        segment: Segment,
        result: ScanResult,
        later: list[Segment],
        logged: Sequence[LoggedBatch],
        torn: str | None,
        *,
        has_wal: bool,
    ) -> None:
        """Report why the log is truncated after its last valid batch: the cases at the top of this module.

        Raises:
            CorruptLog: the tail may contain acknowledged batches, and ``repair`` is False.
        """
        place = f"{segment.path} at byte {result.position}"
        size = segment.size - result.position + sum(one.size for one in later)
        if any(batch.base_offset <= result.next_offset < batch.next_offset for batch in logged):  # case 1
            self.report.append(
                f"{place}: truncated {size} bytes, the write-ahead log has the batches that belong there"
            )
        elif torn is not None:  # case 2
            self.report.append(f"{place}: truncated {size} bytes: {torn}")
        elif has_wal:  # case 3
            self.report.append(f"{place}: truncated {size} bytes that were never acknowledged ({result.problem})")
        elif not self._repair:  # case 4
            raise corrupt_segment(segment.path, result.position, result.problem or "")
        else:
            self.report.append(
                f"{place}: {result.problem}; repaired: the log now ends with offset {result.next_offset - 1}, {size} "
                f"bytes are lost"
            )

    def _restore(self, log: PartitionLog, logged: Sequence[LoggedBatch]) -> None:
        """Append the batches of the write-ahead log that the segments lack.

        Raises:
            CorruptLog: offsets are missing between the two, and ``repair`` is False.
        """
        restored: list[bytes] = []
        next_offset = log.next_offset
        for batch in logged:
            if batch.next_offset <= next_offset:
                continue  # in its segment
            if batch.base_offset != next_offset:
                # The write-ahead log has lost a frame in the middle, and the segment the same batches: two failures.
                if not self._repair:
                    reason = f"it ends before offset {next_offset}, the write-ahead log goes on at {batch.base_offset}"
                    raise corrupt_segment(log.active_path, log.size, reason)
                self.report.append(
                    f"{log.active_path}: repaired: offsets from {next_offset} on are lost, also those from "
                    f"{batch.base_offset} on in the write-ahead log"
                )
                break
            restored.append(batch.batch)
            next_offset = batch.next_offset
        if restored:
            log.restore(b"".join(restored), next_offset)
            self.report.append(f"{log.directory}: restored {len(restored)} batches from the write-ahead log")


def _rewrite(file: File, start: int, end: int) -> None:
    """Write the bytes between two positions again, so that the next sync covers them.

    After a failed sync the operating system can mark pages clean that are not on disk. A second sync does nothing for
    such pages, so a process that was restarted after a failed sync must not rely on it.
    """
    for position in range(start, end, SLICE_SIZE_BYTES):
        file.write_at(position, file.read_at(position, min(SLICE_SIZE_BYTES, end - position)))


def _is_at_end(position: LogPosition, segments: list[Segment]) -> bool:
    """Return whether a log still ends where it ended at the clean shutdown."""
    return bool(segments) and (position.base_offset, position.position) == (segments[-1].base_offset, segments[-1].size)


def _has_lost_its_end(result: ScanResult, later: list[Segment], logged: Sequence[LoggedBatch]) -> bool:
    """Return whether batches of the write-ahead log belong between this segment's last batch and the next segment.

    A gap in the offsets alone is not damage: compaction removes batches.
    """
    return bool(later) and any(result.next_offset <= batch.base_offset < later[0].base_offset for batch in logged)
