"""Filters that decide which partitions are read at all: a group lives in one partition of the offsets topic (LF-40).

Spark applies each filter again to what is read, so nothing here has to be complete; it only must not lose rows. A group
is looked for in one partition only if the number of partitions is known: from the option, or if the directories are
the first N of the topic and the groups at the beginning of each are where N puts them.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import EqualTo, Filter, In

from kproto.spark.decode.blocks import SegmentBlocks
from kproto.spark.decode.errors import Damaged
from kproto.spark.decode.fast import decode_block
from kproto.spark.decode.files import OFFSETS_TOPIC
from kproto.spark.decode.partitioning import partition_for
from kproto.spark.decode.tables import NONE, Job, View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.spark.decode.files import Partition

SAMPLE_SIZE = 16 << 10
"""Bytes at each partition's beginning whose groups are held against the partition's number."""


class Wanted(NamedTuple):
    """Values to which filters narrow columns; None: not narrowed."""

    group_id: frozenset[str] | None = None
    log_partition: frozenset[int] | None = None
    topic: frozenset[str] | None = None
    partition: frozenset[int] | None = None

    def narrowed(self, filters: Iterable[Filter]) -> Wanted:
        """Return what is left with these filters too."""
        found = self
        for one in filters:
            if not isinstance(one, EqualTo | In) or len(one.attribute) != 1:
                continue
            name = one.attribute[0]
            if name in self._fields:
                values = frozenset(one.value if isinstance(one, In) else [one.value])
                before = getattr(found, name)
                found = found._replace(**{name: values if before is None else before & values})
        return found


def pruned(partitions: list[Partition], wanted: Wanted, *, count: int | None, of_batches: bool) -> list[Partition]:
    """Return the partitions that can have wanted rows.

    ``count`` is the number of partitions of the offsets topic, if it was told. Of view batches, topic and partition
    are the log's; of the others they are what was committed, and tell nothing.

    Raises:
        OSError: a segment can't be read.
    """
    if of_batches:
        return [
            partition
            for partition in partitions
            if wanted.topic is None or partition.topic in wanted.topic
            if wanted.partition is None or partition.number in wanted.partition
        ]
    numbers = wanted.log_partition
    if wanted.group_id is not None:
        count = count or partition_count(partitions)
        if count is not None:
            homes = frozenset(partition_for(group, count) for group in wanted.group_id)
            numbers = homes if numbers is None else numbers & homes
    return [one for one in partitions if numbers is None or one.number is None or one.number in numbers]


def partition_count(partitions: list[Partition]) -> int | None:
    """Return how many partitions the offsets topic has, if these tell.

    A log.dir has the first N of them by chance where its broker shares them with others. Then the groups in them tell
    otherwise; or N divides the real number, and a group that is here is where N puts it all the same.
    """
    numbers = {partition.number for partition in partitions}
    count = len(partitions)
    if numbers != set(range(count)) or any(partition.topic != OFFSETS_TOPIC for partition in partitions):
        return None
    fits = all(partition_for(group, count) == one.number for one in partitions for group in _first_groups(one))
    return count if fits else None


def _first_groups(partition: Partition) -> set[str]:
    for segment in partition.segments()[:1]:
        with open(segment.path, "rb") as file:
            head = io.BytesIO(file.read(SAMPLE_SIZE))
        job = Job(view=View.COMMITS, log_partition=partition.number, outcomes=lambda pairs: [NONE] * len(pairs))
        blocks = SegmentBlocks(head, segment.label, base_offset=segment.base_offset, is_newest=True)
        try:
            for block in blocks:
                rows = decode_block(block, job).rows
                return set() if rows is None else set(rows["group_id"].unique().to_pylist())
        except Damaged:  # who reads this partition will be told
            return set()
    return set()
