"""Compare the result of a job with that of DuckDB: another engine, with a query of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.testing import assertDataFrameEqual

from kproto.arrow.schemas import Table
from kproto.spark.engine import is_embedded
from kproto.spark.schemas import spark_schema


def result(table: Table, query: str, **frames: DataFrame) -> pa.Table:
    """Run a query over DataFrames by name; return its rows with the columns of the table in order."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, frame in frames.items():
        connection.register(name, frame.toArrow())
    found = connection.sql(query).to_arrow_table()
    assert sorted(found.column_names) == sorted(table.names)
    return found.select(table.names).cast(table.arrow())


def assert_same(actual: DataFrame, table: Table, query: str, **frames: DataFrame) -> pa.Table:
    """Compare the rows of a job with those of DuckDB in any order; return the latter."""
    expected = result(table, query, **frames)
    assert_rows(actual, table, expected)
    return expected


def assert_rows(actual: DataFrame, table: Table, expected: Any) -> None:
    """Compare the rows of a job with expected ones in any order."""
    if is_embedded():
        found = actual.toArrow()
        assert found.schema.types == table.arrow().types
        wanted = expected if isinstance(expected, pa.Table) else _of_rows(table, expected)
        assert _values(found) == _values(wanted)
        return
    assert actual.schema.simpleString() == spark_schema(table).simpleString()  # nullability is not compared
    assertDataFrameEqual(actual, actual.sparkSession.createDataFrame(expected, spark_schema(table)))


def _of_rows(table: Table, rows: Sequence[Sequence[Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(table.names, row, strict=True)) for row in rows], schema=table.arrow())


def _values(rows: pa.Table) -> list[str]:
    """Return the rows as text, sorted; doubles as Spark's comparison rounds them."""
    listed = rows.to_pylist()
    return sorted(str([f"{v:.8g}" if isinstance(v, float) else v for v in row.values()]) for row in listed)
