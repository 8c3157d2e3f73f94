"""PySpark's functions that the jobs use. Where PySpark takes the name of a column, these do too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kproto.spark.embedded.column import (
    Case,
    Column,
    case,
    col,
    column_of,
    combined,
    computed_before,
    literal,
    named,
    quoted,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.spark.embedded.frame import DataFrame

    Names = str | Column

TIME_FORMATS: dict[str, str] = {"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'": "%Y-%m-%dT%H:%M:%S.%gZ"}
"""DuckDB's form of the patterns of `date_format`."""

__all__ = ["col"]


def lit(value: object) -> Column:
    return column_of(value)


def expr(sql: str) -> Column:
    """Return an expression that both engines understand."""
    return Column(sql)


def broadcast(rows: DataFrame) -> DataFrame:
    """Return the rows: there is one machine."""
    return rows


def when(condition: Column, value: object) -> Case:
    return case(condition, value)


def coalesce(*columns: Names) -> Column:
    return _call("coalesce", *columns)


def greatest(*columns: Names) -> Column:
    return _call("greatest", *columns)


def least(*columns: Names) -> Column:
    return _call("least", *columns)


def max(column: Names) -> Column:  # PySpark's name
    return _aggregate("max({})", column)


def min(column: Names) -> Column:  # PySpark's name
    return _aggregate("min({})", column)


def sum(column: Names) -> Column:  # PySpark's name
    """Return a sum of integers."""
    return _aggregate("sum({})", column, result_type="BIGINT")


def count(column: Names) -> Column:
    is_of_rows = not isinstance(column, Column) and column == "*"
    return _aggregate("count(*)") if is_of_rows else _aggregate("count({})", column)


def count_if(condition: Names) -> Column:
    return _aggregate("count(*) FILTER (WHERE {})", condition)


def count_distinct(column: Names) -> Column:
    return _aggregate("count(DISTINCT {})", column)


def max_by(column: Names, order: Names) -> Column:
    return _aggregate("arg_max_null({}, {})", column, order)


def bool_or(column: Names) -> Column:
    return _aggregate("bool_or({})", column)


def first(column: Names) -> Column:
    return _aggregate("first({})", column)


def last(column: Names, ignorenulls: bool = False) -> Column:
    return _aggregate(f"last_value({{}}{' IGNORE NULLS' if ignorenulls else ''})", column)


def lag(column: Names) -> Column:
    return _aggregate("lag({})", column)


def row_number() -> Column:
    return _aggregate("row_number()")


def collect_list(column: Names) -> Column:
    return _aggregate("coalesce(list({0}) FILTER (WHERE {0} IS NOT NULL), [])", column)


def struct(*columns: str) -> Column:
    return combined(f"struct_pack({', '.join(f'{quoted(name)} := {col(name).sql}' for name in columns)})")


def array(*columns: Names) -> Column:
    return combined(f"[{', '.join('{}' for _ in columns)}]", *map(named, columns))


def size(column: Names) -> Column:
    return _call("len", column)


def filter(column: Names, keep: Callable[[Column], Column]) -> Column:  # PySpark's name
    kept = keep(Column("element"))
    return combined("list_filter({}, lambda element: {})", named(column), kept)


def array_distinct(column: Names) -> Column:
    return _call("list_distinct", column)


def array_contains(column: Names, value: object) -> Column:
    return combined("list_contains({}, {})", named(column), value)


def flatten(column: Names) -> Column:
    return _call("flatten", column)


def concat_ws(separator: str, *columns: Names) -> Column:
    return _call("concat_ws", lit(separator), *columns)


def make_interval(*, mins: Column) -> Column:
    return _call("to_minutes", mins)


def unix_millis(column: Names) -> Column:
    return _call("epoch_ms", column)


def unix_micros(column: Names) -> Column:
    return _call("epoch_us", column)


def to_timestamp(column: Names) -> Column:
    return combined("CAST({} AS TIMESTAMPTZ)", named(column))


def date_trunc(unit: str, column: Names) -> Column:
    return _call("date_trunc", lit(unit), column)


def date_format(column: Names, pattern: str) -> Column:
    return combined(f"strftime({{}}, {literal(TIME_FORMATS[pattern])})", named(column))


def hex(column: Names) -> Column:  # PySpark's name
    return _call("hex", column)


def lower(column: Names) -> Column:
    return _call("lower", column)


def floor(column: Names) -> Column:
    return combined("CAST(floor({}) AS BIGINT)", named(column))


def ceil(column: Names) -> Column:
    return combined("CAST(ceil({}) AS BIGINT)", named(column))


def try_divide(column: Names, by: Names) -> Column:
    return combined("(CAST({} AS DOUBLE) / nullif({}, 0))", named(column), named(by))


def explode(column: Names) -> Column:
    return replace(_call("unnest", column), generates=True)


def inline(column: Names) -> Column:
    """Return a row for each struct of a list, with its fields as columns."""
    return replace(combined("unnest({}, max_depth := 2)", named(column)), generates=True)


def _call(function: str, *columns: Names) -> Column:
    return combined(f"{function}({', '.join('{}' for _ in columns)})", *map(named, columns))


def _aggregate(template: str, *columns: Names, result_type: str | None = None) -> Column:
    """Return the call of an aggregate or window function, whose arguments have no window functions."""
    made = combined(template, *(computed_before(named(column)) for column in columns))
    sql = made.sql if result_type is None else f"CAST({made.sql} AS {result_type})"
    return replace(made, sql=sql, call=made.sql, result_type=result_type)
