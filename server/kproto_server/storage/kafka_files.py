"""Files of a real broker in a data directory: detect that one ran here, and make one that returns rebuild its state."""

# Theory of operation. A broker that starts reads a segment only from its recovery point on, and not at all after a
# clean shutdown; for the rest it trusts its indexes. If kproto appended to a segment, those indexes would hide the new
# batches. So when kproto opens a directory, it removes the broker's clean shutdown marker, the recovery points of its
# logs and the indexes. A broker that comes back then reads every segment and builds new indexes. Each segment gets an
# empty ``.index``: 2.8 logs an error for a segment without one (LF-52).
#
# The same files show that a broker ran here since kproto did. Then kproto's own files about the end of the logs are out
# of date, and so is a write-ahead log from before: the broker has decided what the logs contain.

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.segment_files import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from kproto_server.storage.checkpoints import read_offset_checkpoint, write_offset_checkpoint
from kproto_server.storage.disk import read_all, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto_server.storage.checkpoints import PartitionOffsets
    from kproto_server.storage.disk import Disk

KAFKA_CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
META_PROPERTIES = "meta.properties"
"""Each broker from 0.8.2 on writes this file at its first start (LF-55)."""
KAFKA_RECOVERY_POINTS = "recovery-point-offset-checkpoint"
DERIVED_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, ".txnindex", ".snapshot")
"""Files that a broker builds from segments, and trusts after the segment has changed."""


def was_used_by_kafka(disk: Disk, directories: Sequence[str], own_files: Iterable[str]) -> bool:
    """Return whether a real broker ran here since kproto last opened these partition directories.

    A clean shutdown leaves a marker. A crash leaves preallocated indexes of the active segments of all logs, which are
    never empty while a broker runs (LF-51); kproto's indexes are always empty, and it writes no snapshots. Where there
    are ``own_files`` of kproto about the ends of the logs, an index in some of the directories does not outweigh them:
    it was copied, or the broker has ended before it served.
    """
    if disk.exists(KAFKA_CLEAN_SHUTDOWN):
        return True
    derived = (_has_derived_files(disk, directory) for directory in directories)
    if not any(disk.exists(name) for name in own_files):
        return any(derived)
    return disk.exists(META_PROPERTIES) and bool(directories) and all(derived)


def _has_derived_files(disk: Disk, directory: str) -> bool:
    return any(
        name.endswith(DERIVED_SUFFIXES) and disk.size_of(f"{directory}/{name}") for name in disk.names(directory)
    )


def kafka_recovery_points(disk: Disk) -> PartitionOffsets:
    """Return the broker's recovery point of each partition."""
    if not disk.exists(KAFKA_RECOVERY_POINTS):
        return {}
    return read_offset_checkpoint(read_all(disk, KAFKA_RECOVERY_POINTS))


def require_kafka_recovery(disk: Disk, logs: Iterable[tuple[str, int]]) -> None:
    """Make a real broker recover these logs at its next start; recovery points of other partitions stay.

    Raises:
        OSError: a broker may trust indexes that are out of date.
    """
    points = kafka_recovery_points(disk)
    opened = points.keys() & set(logs)
    if opened:
        others = {key: points[key] for key in points.keys() - opened}
        replace_file(disk, KAFKA_RECOVERY_POINTS, write_offset_checkpoint(others))
    # The marker goes last: while it exists, a start of kproto repeats all of this.
    if disk.exists(KAFKA_CLEAN_SHUTDOWN):
        disk.remove(KAFKA_CLEAN_SHUTDOWN)
        disk.sync_directory("")


def remove_derived_files(disk: Disk, directory: str) -> None:
    """Remove indexes and snapshots of a partition durably, and give each segment an empty index.

    Raises:
        OSError: some files are still there.
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
    """Create an empty index of a segment, unless there is one.

    Raises:
        OSError: the index was not created.
    """
    path = _index_path(segment_path)
    if not disk.exists(path):
        disk.open(path, create=True).close()


def remove_index(disk: Disk, segment_path: str) -> None:
    """Remove the index of a removed segment: a real broker logs an error for an index without a segment.

    Raises:
        OSError: the index is still there.
    """
    path = _index_path(segment_path)
    if disk.exists(path):
        disk.remove(path)


def _index_path(segment_path: str) -> str:
    return segment_path.removesuffix(LOG_SUFFIX) + INDEX_SUFFIX
