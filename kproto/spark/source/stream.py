"""What Spark calls for ``spark.readStream.format("kproto")``.

Theory of operation. A place in the stream is Kafka's: for each partition the next offset, never a byte, since the
cleaner and retention move bytes. Spark writes the end of each micro-batch down before it runs, and runs it again with
the same ends after a crash; the same offsets give the same rows, however the segments were cut meanwhile. What the
cleaner took away between two runs is gone from both, as it is for a consumer.

Ends are only ever at the ends of batches, and not behind a transaction without end, so a row is read once, in its
final state. Nothing has to be remembered beyond the offsets: the rest is found in the log again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kproto.errors import LogError
from kproto.spark.decode.files import find_partitions
from kproto.spark.decode.reading import Range
from kproto.spark.source.options import EARLIEST, LATEST_OFFSET, STREAMED_VIEWS, OptionError, Options
from kproto.spark.source.plan import Part, Task, key_of, offset_for, parts_of, tasks_of
from kproto.spark.source.rows import task_rows
from kproto.spark.source.tail import LogTail

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from kproto.spark.decode.files import Partition

    Offsets = dict[str, int]


class DataLoss(LogError):
    """Offsets that the stream has not read are gone, or its place is behind the end of the log."""


class KprotoStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a log as it grows."""

    def __init__(self, options: Options) -> None:
        if options.view not in STREAMED_VIEWS:
            raise OptionError(
                f"option view: {options.view} is of a whole log; streams have {', '.join(STREAMED_VIEWS)}"
            )
        if not isinstance(options.ending_offsets, str):
            raise OptionError(
                "option endingOffsets: a stream has no end; Trigger.AvailableNow ends it where the log does"
            )
        self.options = options
        self._tails: dict[str, LogTail] = {}
        self._target: Offsets | None = None
        """Where Trigger.AvailableNow is to end."""

    def initialOffset(self) -> Offsets:
        """Return where a new query begins.

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
        """Return where the next micro-batch ends.

        Raises:
            Damaged: what was appended is no batch.
            DataLoss: the log ends before the stream's place, unless it is to go on.
        """
        ends = self._ends(start) if self._target is None else {**start, **self._target}
        for key, offset in start.items():
            if ends.get(key, 0) < offset:
                self._lost(f"partition {key} ends at offset {ends.get(key)}, but was read up to {offset}")
                ends.setdefault(key, offset)
        return _limited(start, ends, limit.max_rows) if isinstance(limit, ReadMaxRows) else ends

    def reportLatestOffset(self) -> Offsets | None:
        """Return the ends as they were seen last."""
        return None

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix where the query is to end."""
        self._target = self._ends({})

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """Return the tasks of a micro-batch.

        Raises:
            DataLoss: offsets of it were deleted unread, unless the query is to go on.
        """
        parts: list[Part] = []
        for partition in self._partitions():
            key = key_of(partition)
            wanted = Range(partition, start.get(key, 0), end.get(key, 0))
            if wanted.end_offset is None or wanted.start_offset >= wanted.end_offset:
                continue
            first = self._tail(partition, wanted.start_offset).start()
            if key in start and wanted.start_offset < first:
                self._lost(f"partition {key} begins at offset {first}, but was read up to {wanted.start_offset} only")
            parts += parts_of(wanted, self.options.task_bytes)
        return list(tasks_of(parts, self.options.task_bytes))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        assert isinstance(partition, Task), "Spark hands out what `partitions` returned"
        return task_rows(partition, self.options)

    def commit(self, end: Offsets) -> None:
        """Do nothing: the log keeps itself."""

    def stop(self) -> None:
        """Do nothing: no file stays open between two calls."""

    def _partitions(self) -> list[Partition]:
        options = self.options
        if options.allow_empty:
            from kproto.spark.source.batch import partitions_of

            return partitions_of(options)
        return find_partitions(options.path, options.topic)

    def _tail(self, partition: Partition, start_offset: int) -> LogTail:
        return self._tails.setdefault(key_of(partition), LogTail(partition, start_offset))

    def _ends(self, start: Offsets) -> Offsets:
        stable = self.options.open_transactions == "wait" and self.options.view != "batches"
        return {
            key_of(partition): self._tail(partition, start.get(key_of(partition), 0)).end(stable=stable)
            for partition in self._partitions()
        }

    def _lost(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            reason = "the option failOnDataLoss = false goes on with what there is"
            raise DataLoss(f"{self.options.path}: {what}: records were deleted unread, or it is another log ({reason})")


def _limited(start: Offsets, ends: Offsets, most: int) -> Offsets:
    """Return ends so that about ``most`` offsets are covered, shared by how much each partition has."""
    waiting = {key: end - start.get(key, 0) for key, end in ends.items()}
    total = sum(max(0, count) for count in waiting.values())
    if total <= most:
        return ends
    return {
        key: ends[key] if count <= 0 else start.get(key, 0) + max(1, count * most // total)
        for key, count in waiting.items()
    }
