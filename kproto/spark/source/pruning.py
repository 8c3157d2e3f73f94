"""Filters that decide which partitions are read: all records of a group are in one partition (LF-40).

Spark applies each filter again to the rows it gets, so pruning may read too much but must not lose rows. A group is
looked for in one partition only if the partition count of the offsets topic is known: from the option, or if the
directories are the first N partitions of the topic and the first groups in some of them are where N puts them.
"""

from __future__ import annotations

import io
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from kproto.arrow.decoding import DecodeRequest, View
from kproto.arrow.fast import decode_block
from kproto.errors import CorruptLog
from kproto.logs.blocks import SegmentBlocks
from kproto.logs.locations import open_file
from kproto.logs.transactions import NONE
from kproto.records.partitioning import OFFSETS_TOPIC, partition_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.datasource import Filter

    from kproto.logs.files import PartitionDirectory

SAMPLE_SIZE = 16 << 10
"""Bytes at the beginning of a partition whose groups are compared with the partition's number."""
SAMPLES = 8
"""Partitions with groups that are compared. By chance, N fits one of them with a probability of 1 / N."""


class Wanted(NamedTuple):
    """The values to which filters restrict columns; None: not restricted."""

    group_id: frozenset[str] | None = None
    log_partition: frozenset[int] | None = None
    topic: frozenset[str] | None = None
    partition: frozenset[int] | None = None

    def narrowed(self, filters: Iterable[Filter]) -> Wanted:
        """Return the values that also pass these filters."""
        from pyspark.sql.datasource import EqualTo, In

        found = self
        for one in filters:
            if not isinstance(one, EqualTo | In) or len(one.attribute) != 1:
                continue
            name = one.attribute[0]
            if name in self._fields:
                values = frozenset(one.value if isinstance(one, In) else [one.value]) - {None}  # equals nothing
                before = getattr(found, name)
                found = found._replace(**{name: values if before is None else before & values})
        return found


def pruned(
    partitions: list[PartitionDirectory], wanted: Wanted, *, count: int | None, of_log: bool
) -> list[PartitionDirectory]:
    """Return the partitions that can have wanted rows.

    ``count`` is the partition count of the offsets topic, if the options give it. ``of_log`` says whether the columns
    topic and partition are those of the log, as in views batches and coverage; in other views they are of the committed
    offset and decide nothing.

    Raises:
        OSError: a segment cannot be read.
    """
    if of_log:
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
            of_groups = frozenset(partition_for(group, count) for group in wanted.group_id)
            numbers = of_groups if numbers is None else numbers & of_groups
    return [one for one in partitions if numbers is None or one.number is None or one.number in numbers]


def partition_count(partitions: list[PartitionDirectory]) -> int | None:
    """Return the partition count of the offsets topic, if these partitions show it.

    A log.dir of one broker of many can hold the first N partitions by chance. Then the groups in them contradict N; or
    N divides the real count, and each group that is here is also where N puts it.
    """
    numbers = {partition.number for partition in partitions}
    count = len(partitions)
    if numbers != set(range(count)) or any(partition.topic != OFFSETS_TOPIC for partition in partitions):
        return None
    samples = islice(((one.number, groups) for one in partitions if (groups := _first_groups(one))), SAMPLES)
    fits = all(partition_for(group, count) == number for number, groups in samples for group in groups)
    return count if fits else None


def partitions_at_least(partitions: list[PartitionDirectory]) -> int | None:
    """Return how many partitions the offsets topic has at least; None if a number is unknown."""
    numbers = [partition.number for partition in partitions]
    if None in numbers:
        return None
    return partition_count(partitions) or max(
        len(numbers) + 1, *(number + 1 for number in numbers if number is not None)
    )


def _first_groups(partition: PartitionDirectory) -> set[str]:
    for segment in partition.segments()[:1]:
        with open_file(segment.path) as file:
            head = io.BytesIO(file.pread(SAMPLE_SIZE, 0))
        request = DecodeRequest(
            view=View.COMMITS,
            log_partition=partition.number,
            outcomes=lambda pairs: [NONE] * len(pairs),
            only_last=True,
        )
        blocks = SegmentBlocks(head, segment.label, base_offset=segment.base_offset, is_newest=True)
        try:
            for block in blocks:
                rows = decode_block(block, request).rows
                return set() if rows is None else set(rows["group_id"].unique().to_pylist())
        except CorruptLog:  # the task that reads this partition raises it again
            return set()
    return set()
