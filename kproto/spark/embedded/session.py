"""The embedded engine's session: a DuckDB in memory that reads logs, Parquet and rows."""

from __future__ import annotations

import glob
import re
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from kproto.logs.locations import local_path
from kproto.spark.embedded.column import SQL_TYPES, literal, quoted
from kproto.spark.embedded.frame import DataFrame
from kproto.spark.scratch import directory_for_rows
from kproto.spark.source.options import read_options
from kproto.spark.source.plan import parts_to_read
from kproto.spark.source.pruning import Wanted
from kproto.spark.source.rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ARROW_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "array<string>": pa.list_(pa.string()),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


class Settings(dict[str, str]):
    """Settings of Spark's writers, whose effects this engine always has: timestamps are microseconds in UTC."""

    def set(self, name: str, value: str) -> None:
        self[name] = value


class EmbeddedSession:
    """Has what the jobs, inputs and commands use of a SparkSession. The caller stops it."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection = duckdb.connect()
        self._ending: ExitStack = ExitStack()
        folder = self._ending.enter_context(directory_for_rows())  # for rows that exceed DuckDB's share of the memory
        self._connection.execute(f"SET TimeZone = 'UTC'; SET temp_directory = {literal(str(folder / 'duckdb'))}")
        self._names: Iterator[int] = count(1)
        self.conf: Settings = Settings()

    @property
    def read(self) -> Reader:
        return Reader(self)

    def createDataFrame(self, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
        """Return rows with the columns ``name type, ...``."""
        fields = columns_of(schema)
        values = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
        arrays = [pa.array(column, ARROW_TYPES[kind]) for column, kind in zip(values, fields.values(), strict=True)]
        return self.of_arrow(pa.table(arrays, names=list(fields)))

    def of_arrow(self, table: pa.Table) -> DataFrame:
        """Return the rows of an Arrow table, copied to a table of DuckDB."""
        name = f"arrow_{next(self._names)}"
        self._connection.register(name, table)
        try:
            return self.as_table(DataFrame(self, f"SELECT * FROM {name}", table.column_names))
        finally:
            self._connection.unregister(name)

    def as_table(self, rows: DataFrame) -> DataFrame:
        """Return rows that are computed now."""
        name = f"rows_{next(self._names)}"
        self.execute(f"CREATE TEMP TABLE {name} AS {rows._sql}")
        return DataFrame(self, f"SELECT * FROM {name}", rows.columns)

    def execute(self, sql: str) -> None:
        self._connection.execute(sql)

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()

    def to_arrow(self, sql: str) -> pa.Table:
        return self._connection.sql(sql).to_arrow_table()

    def stop(self) -> None:
        self._connection.close()
        self._ending.close()


class Reader:
    """Has what the inputs use of a DataFrameReader."""

    def __init__(self, session: EmbeddedSession) -> None:
        self._session: EmbeddedSession = session
        self._options: dict[str, str] = {}
        self._fields: Mapping[str, str] = {}

    def format(self, name: str) -> Reader:
        assert name == "kproto", "the only data source"
        return self

    def option(self, name: str, value: str) -> Reader:
        self._options[name] = value
        return self

    def schema(self, schema: str) -> Reader:
        self._fields = columns_of(schema)
        return self

    def load(self, path: str) -> DataFrame:
        """Read a log with the options of `kproto.spark.source.options`."""
        options = read_options({**self._options, "path": path})
        ranges = tuple(part.range for part in parts_to_read(options, Wanted()))
        return self._session.of_arrow(pa.Table.from_batches(rows_of(ranges, options), schema=options.arrow_schema))

    def parquet(self, uri: str) -> DataFrame:
        """Read the columns of the schema from all files below a directory; those that a file lacks are null.

        A backslash stands before what would be a pattern.
        """
        folder = local_path(re.sub(r"\\(.)", r"\1", uri))
        paths = literal(f"{glob.escape(str(folder))}/**/*.parquet")
        files = f"read_parquet({paths}, hive_partitioning = false, union_by_name = true)"
        there = self._session.to_arrow(f"SELECT * FROM {files} LIMIT 0").column_names
        cast = (
            f"CAST({quoted(name) if name in there else 'NULL'} AS {SQL_TYPES[kind]}) AS {quoted(name)}"
            for name, kind in self._fields.items()
        )
        return DataFrame(self._session, f"SELECT {', '.join(cast)} FROM {files}", list(self._fields))


def columns_of(schema: str) -> dict[str, str]:
    """Return the names and types of a schema like ``moment int, ts timestamp``."""
    return dict(re.findall(r"(\w+) ([\w<>]+)", schema))
