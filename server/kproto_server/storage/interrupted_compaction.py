"""Completion of a compaction that the end of the process interrupted, by the next start (LF-63)."""

# Theory of operation. Compaction replaces one or several segments by one, in three durable steps. The suffix of the new
# file says which of them were done:
#
# ``.cleaned``  being written. The old segments are valid; the file is removed.
# ``.swap``     complete and durable. The new file is valid: the old segments between its first and its last offset are
#               removed, and it is renamed to the ``.log`` name of the first of them. This is done here, any number of
#               times: a step that is already done is skipped or repeated without effect.
# ``.log``      done.
#
# A ``.swap`` file says nothing about old segments after its last offset that compaction emptied. Such a segment can
# stay after a crash; every record in it is superseded by a later one, so the log has the same meaning.

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import CorruptLog, DecodeError
from kproto.records.batches import last_offset
from kproto.records.segment_files import segment_base_offset
from kproto_server.storage.kafka_files import remove_index
from kproto_server.storage.segment_reader import SegmentReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.storage.disk import Disk

CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX = ".cleaned", ".swap", ".deleted"


def remove_segments(disk: Disk, directory: str, paths: Sequence[str]) -> None:
    """Remove segments that a durable ``.swap`` file replaces, durably.

    The removal is made durable before the ``.swap`` file gets its final name. In the other order a power loss could
    leave the new segment beside old segments with the same offsets, and nothing would say that those are obsolete.

    Raises:
        OSError: some segments are still there.
    """
    for path in paths:
        disk.remove(path)
        remove_index(disk, path)
    disk.sync_directory(directory)


def remove_covered_segments(disk: Disk, swap: str) -> None:
    """Remove the segments between the first and the last offset of a ``.swap`` file, but not the one of its name.

    Raises:
        CorruptLog: the file is damaged.
        OSError: some segments are still there.
    """
    directory, _, name = swap.rpartition("/")
    base_offset = segment_base_offset(name.removesuffix(SWAP_SUFFIX)) or 0
    last = _last_offset(disk, swap)
    covered = [other for other in disk.names(directory) if base_offset < (segment_base_offset(other) or 0) <= last]
    remove_segments(disk, directory, [f"{directory}/{other}" for other in covered])


def finish_compaction(disk: Disk, directory: str, *, repair: bool = False) -> list[str]:
    """Remove unfinished files of compaction and of Kafka's deletions, and finish complete ones.

    Return a line for each damaged ``.swap`` file that ``repair`` has removed.

    Raises:
        CorruptLog: a ``.swap`` file is damaged.
        OSError: some steps are not done.
    """
    report = []
    names = disk.names(directory)
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    obsolete = [*cleaned, *(name for name in names if name.endswith(DELETED_SUFFIX))]
    for name in obsolete:
        disk.remove(f"{directory}/{name}")
    if obsolete:
        disk.sync_directory(directory)
    for name in names:
        final = name.removesuffix(SWAP_SUFFIX)
        if final == name:
            continue
        base_offset = segment_base_offset(final)
        if base_offset is None or any(other <= final + CLEANED_SUFFIX for other in cleaned):
            # Kafka splits a segment into several files: it renames them to .swap from the highest base offset down, so
            # a .cleaned file with a lower or equal one means that the .swap files are incomplete together.
            disk.remove(f"{directory}/{name}")
            disk.sync_directory(directory)
            continue
        # The .swap name can be new and not durable (the process was killed, not the machine). A power loss after the
        # removals below could then take the new content and the old.
        disk.sync_directory(directory)
        path = f"{directory}/{name}"
        if not disk.size_of(path) and disk.exists(f"{directory}/{final}"):
            disk.remove(path)  # no batch is in it that could replace one
            continue
        try:
            remove_covered_segments(disk, path)
        except CorruptLog as error:
            if not repair:
                raise
            disk.remove(path)
            disk.sync_directory(directory)
            report.append(f"{path} at byte {error.position}: repaired: removed it, the segments before it are kept")
            continue
        disk.rename(path, f"{directory}/{final}")
        disk.sync_directory(directory)
    return report


def _last_offset(disk: Disk, path: str) -> int:
    """Return the last offset of the batches of a segment; -1 if it is empty."""
    file = disk.open(path)
    reader = SegmentReader(file, path, file.size)
    last = -1
    try:
        while reader.has_more():
            last = last_offset(reader.take())
    except DecodeError as error:
        raise CorruptLog(path, error.position, None, f"{error.reason}; start with --repair to remove it") from None
    finally:
        file.close()
    return last
