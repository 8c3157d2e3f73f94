"""Spark's entry points for ``spark.readStream.format("kproto")``.

Theory of operation. A position in the stream is, as in Kafka, the next offset of each partition, never a byte: the
cleaner and retention move bytes. Spark stores the end of each micro-batch before it runs, and after a crash runs it
again with the same ends. The same offsets give the same rows, however the segments were cut meanwhile. Records that the
cleaner removed between two runs are missing from the second one, as they are for a consumer.

An end is never after the first record of an open transaction. A row is therefore read once, in its final state. Offsets
are the only state that is stored; everything else is found in the log again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kproto.errors import LogError
from kproto.logs.files import find_partitions
from kproto.logs.ranges import OffsetRange
from kproto.spark.source.options import EARLIEST, LATEST_OFFSET, STREAMED_VIEWS, OptionError, Options
from kproto.spark.source.plan import Part, key_of, offset_for, partitions_of, parts_of
from kproto.spark.source.rows import rows_of
from kproto.spark.source.tail import LogTail
from kproto.spark.source.task import Task, keep_modules, tasks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from kproto.logs.files import PartitionDirectory

    Offsets = dict[str, int]


class DataLoss(LogError):
    """Offsets that the stream has not read are gone, or the stream's position is after the end of the log."""


class KprotoStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a log as it grows."""

    def __init__(self, options: Options) -> None:
        if options.view not in STREAMED_VIEWS:
            views = ", ".join(STREAMED_VIEWS)
            raise OptionError(f"option view: {options.view} needs a whole log; views of streams are {views}")
        if not isinstance(options.ending_offsets, str):
            reason = "a stream has no end offsets; Trigger.AvailableNow ends at the current end of the log"
            raise OptionError(f"option endingOffsets: {reason}")
        self.options = options
        self._tails: dict[str, LogTail] = {}
        self._is_bounded = False
        """Whether the trigger is Trigger.AvailableNow."""
        self._target: Offsets | None = None
        """The end of the query with that trigger, from its first micro-batch on."""

    def initialOffset(self) -> Offsets:
        """Return the position of a new query.

        Raises:
            NoLog: there are no partitions, unless ``allowEmpty``.
        """
        start = self.options.starting_offsets
        if start == LATEST_OFFSET:
            return self._ends({})
        given = {} if start == EARLIEST or isinstance(start, str) else start
        found = {}
        for partition in self._partitions():
            offset = offset_for(given, partition)
            found[key_of(partition)] = self._tail(partition, 0).start() if offset is None else offset
        return found

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Return the end of the next micro-batch.

        Raises:
            CorruptLog: appended bytes are not a batch.
            DataLoss: the log ends before the stream's position, unless ``failOnDataLoss`` is false.
        """
        ends = self._ends(start) if self._target is None else {**start, **self._target}
        if self._is_bounded:
            self._target = dict(ends)
        for key, offset in start.items():
            if ends.get(key, 0) < offset:
                self._lost(f"partition {key} ends at offset {ends.get(key)}, but was read up to {offset}")
                ends.setdefault(key, offset)
        return _limited(start, ends, limit.max_rows) if isinstance(limit, ReadMaxRows) else ends

    def reportLatestOffset(self) -> Offsets | None:
        """Return None: the ends are not reported to Spark's metrics."""
        return None

    def prepareForTriggerAvailableNow(self) -> None:
        """Have the next `latestOffset` fix the end of the query: it knows from where on to look for the end."""
        self._is_bounded = True

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """Return the tasks of a micro-batch.

        Raises:
            DataLoss: offsets of it were deleted unread, unless ``failOnDataLoss`` is false.
        """
        parts: list[Part] = []
        found = {key_of(partition): partition for partition in self._partitions()}
        for key in end.keys() - found.keys():
            if start.get(key, 0) < end[key]:
                self._lost(f"partition {key} is not there, but was to be read from {start.get(key, 0)} to {end[key]}")
        for key, partition in found.items():
            wanted = OffsetRange(partition, start.get(key, 0), end.get(key, 0))
            if wanted.end_offset is None or wanted.start_offset >= wanted.end_offset:
                continue
            first = self._tail(partition, wanted.start_offset).start()
            if key in start and wanted.start_offset < first:
                self._lost(f"partition {key} begins at offset {first}, but was read up to {wanted.start_offset} only")
            parts += parts_of(wanted, self.options.task_bytes)
        return list(tasks_of(parts, self.options.task_bytes))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        assert isinstance(partition, Task), "Spark passes what `partitions` returned"
        keep_modules()
        return rows_of(partition.ranges, self.options)

    def commit(self, end: Offsets) -> None:
        """Do nothing: reading does not change the log."""

    def stop(self) -> None:
        """Do nothing: no file stays open between two calls."""

    def _partitions(self) -> list[PartitionDirectory]:
        options = self.options
        # A stream may begin on partitions that are still empty, so it does not use the check of `partitions_of`.
        return partitions_of(options) if options.allow_empty else find_partitions(options.path, options.topics)

    def _tail(self, partition: PartitionDirectory, start_offset: int) -> LogTail:
        return self._tails.setdefault(key_of(partition), LogTail(partition, start_offset))

    def _ends(self, start: Offsets) -> Offsets:
        stable = self.options.open_transactions == "wait" and self.options.view != "batches"
        return {
            key_of(partition): self._tail(partition, start.get(key_of(partition), 0)).end(stable=stable)
            for partition in self._partitions()
        }

    def _lost(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            reason = "records were deleted unread, or it is another log (option failOnDataLoss = false goes on)"
            raise DataLoss(f"{self.options.path}: {what}: {reason}")


def _limited(start: Offsets, ends: Offsets, limit: int) -> Offsets:
    """Return ends that cover at most ``limit`` offsets, shared in proportion to what each partition has left."""
    left = {key: end - start.get(key, 0) for key, end in ends.items()}
    total = sum(max(0, count) for count in left.values())
    if total <= limit:
        return ends
    limited = dict(ends)
    unshared = limit
    for key, count in sorted(left.items(), key=lambda item: -item[1]):  # the others will have more left than these
        if count > 0:
            share = min(unshared, max(1, count * limit // total))
            limited[key] = start.get(key, 0) + share
            unshared -= share
    return limited
