"""What Spark calls for ``spark.read.format("kproto")``: the data source, and its readers.

Spark's planner and its workers run in Python processes of their own: a reader is made in the planner, narrowed by
filters there, and sent to the workers with one task each. A reader that takes filters is refused by Spark where
pushdown is off, so there are two, and two data sources; `kproto.spark.register` knows which to register.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kproto.errors import NoLog
from kproto.spark.decode.files import find_partitions, survey
from kproto.spark.decode.reading import Range
from kproto.spark.source.options import LATEST_OFFSET, OptionError, Options, read_options
from kproto.spark.source.plan import Part, Task, offset_for, parts_of, tasks_of
from kproto.spark.source.pruning import Wanted, pruned
from kproto.spark.source.rows import task_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader, Filter
    from pyspark.sql.types import StructType

    from kproto.spark.decode.files import Partition


class KprotoReader(DataSourceReader):
    """Reads a log once."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.wanted: Wanted = Wanted()

    def partitions(self) -> list[InputPartition]:
        """Return the tasks.

        Raises:
            NoLog: there is nothing to read, unless ``allowEmpty``.
            OptionError: offsets that only streams can begin with.
            OSError: the log can't be listed.
        """
        options = self.options
        if options.starting_offsets == LATEST_OFFSET:
            raise OptionError("option startingOffsets: latest is for streams; a log read once has nothing behind it")
        found = partitions_of(options)
        read = pruned(found, self.wanted, count=options.partitions, of_batches=options.view == "batches")
        parts = (part for partition in read for part in self._parts(partition))
        return list(tasks_of(parts, options.task_bytes))

    def _parts(self, partition: Partition) -> Iterable[Part]:
        options = self.options
        start, end = options.starting_offsets, options.ending_offsets
        first = (0 if isinstance(start, str) else offset_for(start, partition)) or 0
        last = None if isinstance(end, str) else offset_for(end, partition)
        parts = parts_of(Range(partition, first, last), options.task_bytes)
        if options.view != "latest":
            return parts
        size = sum(part.size for part in parts)  # who tells what is latest has to see all of a partition
        return [Part(Range(partition, first, last), size)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        assert isinstance(partition, Task), "Spark hands out what `partitions` returned"
        return task_rows(partition, self.options, self.wanted.group_id)


class NarrowingReader(KprotoReader):
    """Reads what filters leave of a log."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take what narrows; Spark is to apply every filter all the same."""
        self.wanted: Wanted = self.wanted.narrowed(filters)
        return filters


def partitions_of(options: Options) -> list[Partition]:
    """Return the partitions that are asked for.

    Raises:
        NoLog: there are none, or nothing in them, and that is not allowed.
        OSError: a directory can't be read.
    """
    try:
        found = find_partitions(options.path, options.topic)
    except NoLog:
        if options.allow_empty:
            return []
        raise
    counted = survey(found)
    if not counted.size and not options.allow_empty:
        reason = f"{counted.partitions} partitions with {counted.files} segments, all empty: not a single record"
        raise NoLog(f"{options.path}: {reason} (option allowEmpty takes that for an answer)")
    return found


class KprotoSource(DataSource):
    """The data source without filters: what is read does not depend on them."""

    @classmethod
    def name(cls) -> str:
        return "kproto"

    def schema(self) -> StructType:
        """Return the schema of the view.

        Raises:
            OptionError: an option is not known, or has no such value.
        """
        return read_options(self.options).table.spark()

    def reader(self, schema: StructType) -> DataSourceReader:
        return KprotoReader(read_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from kproto.spark.source.stream import KprotoStreamReader

        return KprotoStreamReader(read_options(self.options))


class NarrowingSource(KprotoSource):
    """The data source where Spark hands filters down; option ``pushdown`` = false still reads without them."""

    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_options(self.options)
        return NarrowingReader(options) if options.pushdown else KprotoReader(options)
