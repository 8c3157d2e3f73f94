"""What a real broker leaves in a data directory, and what it must not find there when it comes back.

A broker that starts reads a segment only from its recovery point on, and only if it was not stopped in order; for all
else it believes its indexes. So what we write to would be served by indexes that know nothing of it. Therefore, when a
directory is opened, the mark of its orderly end goes, and the recovery points of our logs; then it looks at all of
them, and makes their indexes anew. Each segment has an empty index: of one without, 2.8 complains.

The same files tell that a broker has run here since we last did. Then our own notes of where logs end are no longer
true, nor is a journal that was left by a crash: that broker has decided what the logs have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.segment_files import LOG_SUFFIX
from kproto_server.storage.checkpoints import read_offset_checkpoint, write_offset_checkpoint
from kproto_server.storage.disk import read_all, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.storage.checkpoints import Offsets
    from kproto_server.storage.disk import Disk

CLEAN_END = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
INDEX_SUFFIX = ".index"
DERIVED_SUFFIXES = (INDEX_SUFFIX, ".timeindex", ".txnindex", ".snapshot")
"""What Kafka makes again from the segments, and would believe of a segment that has changed."""


def was_used_by_kafka(disk: Disk, directories: Iterable[str]) -> bool:
    """Return whether a real broker has run since we opened these partitions' directories, or before we ever did.

    One that was stopped in order says so; one that was not has left indexes of its newest segments, which are never
    empty while it runs (LF-51). Ours always are, and we have no snapshots.
    """
    return disk.exists(CLEAN_END) or any(
        name.endswith(DERIVED_SUFFIXES) and disk.size_of(f"{directory}/{name}")
        for directory in directories
        for name in disk.names(directory)
    )


def recovery_points(disk: Disk) -> Offsets:
    """Return up to where a real broker knows its logs to be on the disk."""
    return read_offset_checkpoint(read_all(disk, RECOVERY_POINTS)) if disk.exists(RECOVERY_POINTS) else {}


def take_over(disk: Disk, logs: Iterable[tuple[str, int]]) -> None:
    """Have a real broker look at all of these logs when it starts again; what it has of other topics stays.

    Raises:
        OSError: it may believe what is no longer so.
    """
    points = recovery_points(disk)
    ours = points.keys() & set(logs)
    if ours:
        replace_file(disk, RECOVERY_POINTS, write_offset_checkpoint({key: points[key] for key in points.keys() - ours}))
    if disk.exists(CLEAN_END):
        disk.remove(CLEAN_END)
        disk.sync_directory("")


def remove_derived_files(disk: Disk, directory: str) -> None:
    """Remove all that is made of segments, durably, and give each segment an empty index.

    Raises:
        OSError: not all of it is removed.
    """
    names = disk.names(directory)
    segments = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
    derived = [
        name
        for name in names
        if name.endswith(DERIVED_SUFFIXES)
        and (name.rpartition(".")[0] not in segments or disk.size_of(f"{directory}/{name}"))
    ]
    for name in derived:
        disk.remove(f"{directory}/{name}")
    if derived:
        disk.sync_directory(directory)
    for name in segments:
        add_index(disk, f"{directory}/{name}{LOG_SUFFIX}")


def add_index(disk: Disk, segment_path: str) -> None:
    """Give a segment an index without entries, unless it has one.

    Raises:
        OSError: it can't be made.
    """
    path = _index_of(segment_path)
    if not disk.exists(path):
        disk.open(path, create=True).close()


def remove_index(disk: Disk, segment_path: str) -> None:
    """Remove the index of a segment that is gone: a real broker complains of one without a segment.

    Raises:
        OSError: it can't be removed.
    """
    path = _index_of(segment_path)
    if disk.exists(path):
        disk.remove(path)


def _index_of(segment_path: str) -> str:
    return segment_path.removesuffix(LOG_SUFFIX) + INDEX_SUFFIX
