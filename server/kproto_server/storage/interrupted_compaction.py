"""What an interrupted compaction, or removal, has left: finished by the next start, or the next compaction.

Theory of operation. Content that is to take the place of several segments has the suffix ``.cleaned`` while it is
written, and ``.swap`` when it is complete and on the disk. From then on it counts: the segments between its first and
its last offset are removed, and then it is renamed. A segment of that range that has nothing left in the new content
may come back if this is interrupted; all that it says has been superseded by what is behind it (LF-63).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import DecodeError
from kproto.records.segment_files import segment_base_offset
from kproto_server.storage.errors import corrupt_segment
from kproto_server.storage.kafka_files import remove_index
from kproto_server.storage.segment_reader import SegmentReader, last_offset

if TYPE_CHECKING:
    from kproto_server.storage.disk import Disk

CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX = ".cleaned", ".swap", ".deleted"


def finish_swap(disk: Disk, directory: str, swap: str, replaced: list[str]) -> None:
    """Put a durable ``.swap`` in the place of the segments of which it has the content, the first of which may be gone.

    Raises:
        OSError: it is not done yet.
    """
    for path in replaced[1:]:
        disk.remove(path)
        remove_index(disk, path)
    disk.sync_directory(directory)
    disk.rename(swap, replaced[0])
    disk.sync_directory(directory)


def finish_compaction(disk: Disk, directory: str) -> None:
    """Do what an interrupted compaction, or removal, has left to do.

    Raises:
        CorruptLog: what was to take the place of others is damaged.
        OSError: it is not done yet.
    """
    names = disk.names(directory)
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    left = [*cleaned, *(name for name in names if name.endswith(DELETED_SUFFIX))]
    for name in left:
        disk.remove(f"{directory}/{name}")
    if left:
        disk.sync_directory(directory)
    for name in names:
        final = name.removesuffix(SWAP_SUFFIX)
        if final == name:
            continue
        base_offset = segment_base_offset(final)
        if base_offset is None or any(other <= final + CLEANED_SUFFIX for other in cleaned):
            disk.remove(f"{directory}/{name}")
            disk.sync_directory(directory)
            continue
        disk.sync_directory(directory)  # else the power may take its name, and what is removed for it too
        swap = f"{directory}/{name}"
        last = _last_offset(disk, swap)
        covered = [one for one in names if base_offset < (segment_base_offset(one) or 0) <= last]
        finish_swap(disk, directory, swap, [f"{directory}/{one}" for one in (final, *covered)])


def _last_offset(disk: Disk, path: str) -> int:
    """Return the last offset of a segment's batches; -1: it has none."""
    reader = SegmentReader(disk, path, disk.size_of(path))
    last = -1
    try:
        while reader.has_more():
            last = last_offset(reader.take())
    except DecodeError as error:
        raise corrupt_segment(path, error.position, error.reason) from None
    finally:
        reader.close()
    return last
