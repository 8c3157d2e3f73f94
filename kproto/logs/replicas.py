"""Recognize the replicas of a partition in the log.dirs of several brokers, and compare them.

Theory of operation. Replicas have the same cluster id, topic and partition. The most complete one has the highest
leader epoch, and among those the highest end. Another one has diverged if it ends after the end that the most complete
one has for its last epoch, as a broker finds out with OffsetsForLeaderEpoch, or if its last batch has another checksum
there. It is cut if its end is below what its broker has stored as high watermark, or in the middle of a batch.
Otherwise it is behind if it ends earlier. Beginnings may differ: each broker deletes segments on its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError, NoLog
from kproto.logs.files import find_partitions
from kproto.logs.identity import broker_properties, read_epochs
from kproto.logs.index import tail_offset
from kproto.logs.ranges import OffsetRange, RangeBlocks
from kproto.records.batch_header import CRC_POSITION, MAGIC, MAGIC_POSITION
from kproto.records.batches import first_offset, last_offset
from kproto.records.segment_files import HIGH_WATERMARKS, offsets_in_checkpoint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kproto.logs.files import PartitionDirectory
    from kproto.logs.locations import Location

IN_PATH = re.compile(r"(?:broker|node|kafka)[-_.]?(\d{1,9})(?!\d)", re.IGNORECASE)
"""The id of a broker in the name of a directory."""
CRC_SIZE = 4

READ, SAME, BEHIND, CUT, DIVERGED = "read", "same", "behind", "cut", "diverged"


class LogDir(NamedTuple):
    """A directory of a broker's partitions and what its files say about the broker; None: unknown."""

    path: Location
    cluster_id: str | None
    broker_id: int | None
    high_watermarks: Mapping[tuple[str, int], int]


class Replica(NamedTuple):
    """A partition in the log.dir of a broker."""

    log_dir: LogDir
    partition: PartitionDirectory
    start_offset: int
    log_end: int
    last_batch: tuple[int, int, bytes] | None
    """First and last offset and checksum of the last batch; None: there is none, or it is not of magic 2."""
    torn_bytes: int
    epochs: Mapping[int, int]
    """The first offset of each leader epoch that has a batch."""
    size: int

    @property
    def completeness(self) -> tuple[int, int, int, int]:
        """The most complete replica has the highest value."""
        epoch = max(self.epochs, default=-1)
        return epoch, self.log_end, -self.start_offset, -(self.log_dir.broker_id or 0)


class Compared(NamedTuple):
    """A replica beside the one of its partition that is read."""

    replica: Replica
    state: str
    """One of read, same, behind, cut and diverged."""
    behind: int
    """The offsets at its end that the read one has and this one does not."""
    diverged_at: int | None
    """The offset from which it differs at the latest; None: it has not diverged."""


def find_log_dirs(paths: Iterable[str]) -> dict[str | None, list[str]]:
    """Return paths by the cluster id of their log.dirs. A path without an id counts as one of the only cluster.

    Raises:
        NoLog: a path holds no partitions.
        OSError: a path cannot be read.
    """
    found: dict[str | None, list[str]] = {}
    for path in paths:
        (partition, *_) = find_partitions(path, None)
        found.setdefault(broker_properties(partition.path.parent).get("cluster.id"), []).append(path)
    if None in found and len(found) == 2:
        (named,) = (cluster_id for cluster_id in found if cluster_id is not None)
        found = {named: [path for of_cluster in found.values() for path in of_cluster]}
    return found


def find_replicas(paths: Iterable[str], topics: Collection[str] | None = None) -> list[list[Replica]]:
    """Return the replicas of each partition in log.dirs of one cluster, the most complete one first.

    Raises:
        CorruptLog: the end of a log is damaged.
        NoLog: a path holds no partitions, or two of them hold the same partition of one broker.
        OSError: a path cannot be read.
    """
    by_partition: dict[tuple[str, int | None], list[Replica]] = {}
    known: dict[Location, LogDir] = {}
    for path in paths:
        for partition in find_partitions(path, None):
            if topics is None or partition.topic in topics:
                folder = partition.path.parent
                if folder not in known:
                    known[folder] = _log_dir(folder)
                log_dir = known[folder]
                found = by_partition.setdefault(partition[:2], [])
                _check_broker(log_dir, partition, found)
                found.append(_replica(log_dir, partition))
    ordered = (sorted(found, key=lambda one: one.completeness, reverse=True) for found in by_partition.values())
    return sorted(ordered, key=lambda found: (found[0].partition.topic, found[0].partition.number or 0))


def _check_broker(log_dir: LogDir, partition: PartitionDirectory, others: Iterable[Replica]) -> None:
    """Check that no other replica of a partition is of the same broker: releases up to 2.1 store no cluster id."""
    for other in others:
        if log_dir.broker_id is not None and log_dir.broker_id == other.log_dir.broker_id:
            both = f"{other.partition.path} and {partition.path}"
            advice = "give one copy of each broker, and, where no cluster id is stored, one cluster"
            raise NoLog(f"{both}: both are of broker {log_dir.broker_id}: {advice}")


def compare(replicas: list[Replica]) -> list[Compared]:
    """Return the replicas of one partition, the most complete one first, beside it."""
    read, *others = replicas
    return [Compared(read, CUT if _is_cut(read) else READ, 0, None), *(_compared(one, read) for one in others)]


def _compared(replica: Replica, read: Replica) -> Compared:
    behind = max(0, read.log_end - replica.log_end)
    at = _diverged_at(replica, read)
    if at is not None:
        return Compared(replica, DIVERGED, behind, at)
    if _is_cut(replica):
        return Compared(replica, CUT, behind, None)
    return Compared(replica, BEHIND if behind else SAME, behind, None)


def _is_cut(replica: Replica) -> bool:
    number = replica.partition.number
    marks = replica.log_dir.high_watermarks
    stored = 0 if number is None else marks.get((replica.partition.topic, number), 0)
    return bool(replica.torn_bytes) or replica.log_end < stored


def _diverged_at(replica: Replica, read: Replica) -> int | None:
    """Return the offset from which a replica differs from the read one at the latest; None: it does not."""
    if replica.epochs and read.epochs:
        epoch = max(replica.epochs)
        later = [start for other, start in read.epochs.items() if other > epoch]
        end = min([*later, read.log_end])
        if replica.log_end > end:
            return end
    if replica.last_batch is not None and replica.log_end <= read.log_end:
        first, last, checksum = replica.last_batch
        there = _batch_at(read.partition, first)
        if there is not None and there[:2] == (first, last) and there[2] != checksum:
            return first
    return None


def _log_dir(folder: Location) -> LogDir:
    properties = broker_properties(folder)
    stored = properties.get("broker.id") or properties.get("node.id")
    if stored is None or not stored.isdigit():
        names = (IN_PATH.search(part) for part in reversed(str(folder).split("/")))
        stored = next((match[1] for match in names if match), None)
    try:
        marks = offsets_in_checkpoint((folder / HIGH_WATERMARKS).read_text(encoding="utf-8"), HIGH_WATERMARKS)
    except (OSError, DecodeError, UnicodeDecodeError):  # unknown
        marks = {}
    return LogDir(folder, properties.get("cluster.id"), None if stored is None else int(stored), marks)


def _replica(log_dir: LogDir, partition: PartitionDirectory) -> Replica:
    sizes = partition.sizes()
    blocks = RangeBlocks(OffsetRange(partition, tail_offset(partition) or 0, None))
    last = None
    for block in blocks:
        last = _batch(block.data, block.starts[-1])
    # Without batches from its base offset on, the name of the newest segment is the end of the log.
    end = max([blocks.next_offset, *(segment.base_offset for segment, _ in sizes[-1:])])
    epochs = {epoch: start for epoch, start in read_epochs(partition.path).items() if start < end}
    return Replica(
        log_dir,
        partition,
        sizes[0][0].base_offset if sizes else 0,
        end,
        last,
        0 if blocks.torn is None else blocks.torn.size,
        epochs,
        sum(size for _, size in sizes),
    )


def _batch_at(partition: PartitionDirectory, offset: int) -> tuple[int, int, bytes] | None:
    for block in RangeBlocks(OffsetRange(partition, offset, offset + 1)):
        for start in block.starts:
            found = _batch(block.data, start)
            if found is not None and found[0] == offset:
                return found
    return None


def _batch(data: bytes, start: int) -> tuple[int, int, bytes] | None:
    if data[start + MAGIC_POSITION] != MAGIC:
        return None
    # The checksum covers no leader epoch, so it is equal in all replicas.
    checksum = data[start + CRC_POSITION : start + CRC_POSITION + CRC_SIZE]
    return first_offset(data, start), last_offset(data, start), checksum


def paths_of(replicas: Iterable[list[Replica]]) -> list[str]:
    """Return the directories of the most complete replicas."""
    return [str(found[0].partition.path) for found in replicas]
