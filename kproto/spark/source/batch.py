"""Spark's entry points for ``spark.read.format("kproto")``: the data source and its readers.

Spark's planner and its workers run in Python processes of their own. The planner makes a reader, narrows it by filters,
and sends it to the workers with one task each. Spark refuses a reader that accepts filters while filter pushdown is
off, so there are two readers and two data sources; `kproto.spark.register` registers one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kproto.spark.source.options import LATEST_OFFSET, OptionError, Options, read_options
from kproto.spark.source.plan import parts_to_read
from kproto.spark.source.pruning import Wanted
from kproto.spark.source.rows import rows_of
from kproto.spark.source.stream import KprotoStreamReader
from kproto.spark.source.task import Task, keep_modules, tasks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader, Filter
    from pyspark.sql.types import StructType


class KprotoReader(DataSourceReader):
    """Reads a log once."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.wanted: Wanted = Wanted()

    def partitions(self) -> list[InputPartition]:
        """Return the tasks.

        Raises:
            NoLog: there is nothing to read, unless ``allowEmpty``.
            OptionError: ``startingOffsets`` is latest, which only streams can use.
            OSError: the log cannot be listed.
        """
        if self.options.starting_offsets == LATEST_OFFSET:
            raise OptionError("option startingOffsets: only a stream can start at latest")
        return list(tasks_of(parts_to_read(self.options, self.wanted), self.options.task_bytes))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        assert isinstance(partition, Task), "Spark passes what `partitions` returned"
        keep_modules()
        return rows_of(partition.ranges, self.options, self.wanted.group_id)


class NarrowingReader(KprotoReader):
    """Reads the part of a log that filters leave."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Use the filters for pruning; return all of them, so that Spark applies each one to the rows too."""
        self.wanted: Wanted = self.wanted.narrowed(filters)
        return filters


class KprotoSource(DataSource):
    """The data source without filter pushdown."""

    @classmethod
    def name(cls) -> str:
        return "kproto"

    def schema(self) -> StructType:
        """Return the schema of the view.

        Raises:
            OptionError: an option is unknown, or has an invalid value.
        """
        return read_options(self.options).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return KprotoReader(read_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return KprotoStreamReader(read_options(self.options))


class NarrowingSource(KprotoSource):
    """The data source with filter pushdown; option ``pushdown`` = false reads without it."""

    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_options(self.options)
        return NarrowingReader(options) if options.pushdown else KprotoReader(options)
