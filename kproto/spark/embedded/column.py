"""Expressions over the rows of a statement, whose alias is ``t``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any, Protocol

SQL_TYPES: dict[str, str] = {
    "boolean": "BOOLEAN",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "array<string>": "VARCHAR[]",
    "binary": "BLOB",
    "timestamp": "TIMESTAMPTZ",
}
"""DuckDB's name of each type of `kproto.arrow.schemas.Type`."""

_numbers = count(1)


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a Python value as SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | float():
            return f"({value!r})"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime() if value.tzinfo is not None:
            return f"TIMESTAMPTZ '{value.isoformat()}'"
    raise TypeError(f"no literal for {value!r}")


class OverClause(Protocol):
    """The window of a window function."""

    @property
    def sql(self) -> str:
        """What stands between the parentheses of OVER."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """A column to sort by."""

    sql: str


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """An expression."""

    sql: str
    name: str | None = None
    """The name of the column that it becomes; None: without a name."""
    before: tuple[tuple[str, str], ...] = ()
    """Names and expressions of the columns that a statement before has to add, in this order."""
    has_window: bool = False
    call: str | None = None
    """The call of a function that may become a window function."""
    result_type: str | None = None
    """The type to which the result of `call` is cast."""
    generates: bool = False
    """Whether it becomes several rows or columns."""

    def alias(self, name: str) -> Column:
        return replace(self, name=name)

    def cast(self, kind: str) -> Column:
        return combined(f"CAST({{}} AS {SQL_TYPES[kind]})", self)

    def over(self, window: OverClause) -> Column:
        assert self.call is not None, "the result of a function"
        sql = f"{self.call} OVER ({window.sql})"
        if self.result_type is not None:
            sql = f"CAST({sql} AS {self.result_type})"
        return replace(self, sql=sql, has_window=True, call=None)

    def isNull(self) -> Column:
        return combined("({} IS NULL)", self)

    def isNotNull(self) -> Column:
        return combined("({} IS NOT NULL)", self)

    def isin(self, *values: Any) -> Column:
        listed = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
        return combined(f"({{}} IN ({', '.join(map(literal, listed))}))", self) if listed else combined("FALSE")

    def eqNullSafe(self, other: object) -> Column:
        return combined("({} IS NOT DISTINCT FROM {})", self, other)

    def asc(self) -> Ordering:
        return Ordering(f"{self.sql} ASC NULLS FIRST")

    def asc_nulls_last(self) -> Ordering:
        return Ordering(f"{self.sql} ASC NULLS LAST")

    def desc(self) -> Ordering:
        return Ordering(f"{self.sql} DESC NULLS LAST")

    def desc_nulls_last(self) -> Ordering:
        return self.desc()

    def __eq__(self, other: object) -> Column:  # type: ignore[override]  # as in PySpark
        return combined("({} = {})", self, other)

    def __ne__(self, other: object) -> Column:  # type: ignore[override]  # as in PySpark
        return combined("({} <> {})", self, other)

    def __hash__(self) -> int:
        return id(self)

    def __lt__(self, other: object) -> Column:
        return combined("({} < {})", self, other)

    def __le__(self, other: object) -> Column:
        return combined("({} <= {})", self, other)

    def __gt__(self, other: object) -> Column:
        return combined("({} > {})", self, other)

    def __ge__(self, other: object) -> Column:
        return combined("({} >= {})", self, other)

    def __add__(self, other: object) -> Column:
        return combined("({} + {})", self, other)

    def __sub__(self, other: object) -> Column:
        return combined("({} - {})", self, other)

    def __truediv__(self, other: object) -> Column:
        return combined("(CAST({} AS DOUBLE) / {})", self, other)

    def __and__(self, other: object) -> Column:
        return combined("({} AND {})", self, other)

    def __or__(self, other: object) -> Column:
        return combined("({} OR {})", self, other)

    def __invert__(self) -> Column:
        return combined("(NOT {})", self)

    def __bool__(self) -> bool:
        raise TypeError("a column has no truth value: use & | ~")


class Case(Column):
    """The result of `when`, which can be continued."""

    __slots__ = ()

    def when(self, condition: Column, value: object) -> Case:
        return _case("{} WHEN {} THEN {}", self, condition, value)

    def otherwise(self, value: object) -> Column:
        return combined("{} ELSE {} END", replace(self, sql=self.sql.removesuffix(" END")), value)


def case(condition: Column, value: object) -> Case:
    """Return the beginning of a case expression, which is null where no condition is true."""
    return _case("CASE{} WHEN {} THEN {}", combined(""), condition, value)


def _case(template: str, start: Column, condition: Column, value: object) -> Case:
    made = combined(template + " END", replace(start, sql=start.sql.removesuffix(" END")), condition, value)
    return Case(made.sql, before=made.before, has_window=made.has_window)


def column_of(value: object) -> Column:
    """Return a column as it is, and a value as a literal."""
    return value if isinstance(value, Column) else Column(literal(value))


def named(value: object) -> Column:
    """Return a column as it is, and the column of a name."""
    return value if isinstance(value, Column) else col(str(value))


def col(name: str) -> Column:
    """Return the column of a name, or a field of one: ``then.tombstone``."""
    parts = name.split(".")
    return Column(".".join(["t", *map(quoted, parts)]), parts[-1])


def combined(template: str, *operands: object) -> Column:
    """Return an expression of operands, each for one ``{}`` of the template."""
    columns = [column_of(operand) for operand in operands]
    before = tuple(dict.fromkeys(pair for column in columns for pair in column.before))
    sql = template.format(*(column.sql for column in columns))
    return Column(sql, before=before, has_window=any(column.has_window for column in columns))


def computed_before(column: Column) -> Column:
    """Return a column of the same values that has no window function."""
    if not column.has_window:
        return column
    name = f"__before_{next(_numbers)}"
    return Column(f"t.{quoted(name)}", before=(*column.before, (name, column.sql)))
