"""A statement as PySpark's DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kproto.spark.embedded.column import SQL_TYPES, Column, Ordering, col, combined, literal, named, quoted
from kproto.spark.embedded.window import orders

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

JOINS: dict[str, str] = {"inner": "JOIN", "left": "LEFT JOIN", "full": "FULL JOIN", "left_semi": "SEMI JOIN"}
TYPE_NAMES: dict[str, str] = {sql: name for name, sql in SQL_TYPES.items()} | {"TIMESTAMP WITH TIME ZONE": "timestamp"}


class Database(Protocol):
    """What statements need of the session."""

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    def execute(self, sql: str) -> None:
        """Run a statement without rows."""

    def to_arrow(self, sql: str) -> pa.Table:
        """Return the rows of a statement as an Arrow table."""

    def as_table(self, rows: DataFrame) -> DataFrame:
        """Return rows that are computed now."""


class Row(tuple[Any, ...]):
    """A row whose values have a position and a name."""

    names: tuple[str, ...] = ()

    @classmethod
    def made(cls, names: tuple[str, ...], values: Sequence[Any]) -> Row:
        row = cls(values)
        row.names = names
        return row

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names.index(key) if isinstance(key, str) else key)


class DataFrame:
    """A SELECT statement, and the names of its columns."""

    def __init__(self, session: Database, sql: str, columns: Sequence[str]) -> None:
        self.sparkSession: Database = session
        self.columns: list[str] = list(columns)
        self._sql: str = sql

    def __getitem__(self, name: str) -> Column:
        return col(name)

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """The names of the columns with Spark's names of their types."""
        described = self.sparkSession.fetch(f"DESCRIBE {self._sql}")
        return [(row[0], TYPE_NAMES[row[1]]) for row in described]

    def select(self, *columns: str | Column) -> DataFrame:
        chosen: list[Column] = []
        for one in columns:
            if isinstance(one, Column):
                chosen.append(one)
            elif one == "*":
                chosen += map(col, self.columns)
            elif one.endswith(".*"):
                chosen.append(Column(f"unnest({col(one.removesuffix('.*')).sql})", generates=True))
            else:
                chosen.append(col(one))
        return self._projected(chosen)

    def withColumn(self, name: str, column: Column) -> DataFrame:
        others = {existing: col(existing) for existing in self.columns}
        return self._projected(list((others | {name: column.alias(name)}).values()))

    def withColumnRenamed(self, existing: str, new: str) -> DataFrame:
        return self._projected([col(name).alias(new) if name == existing else col(name) for name in self.columns])

    def drop(self, *names: str) -> DataFrame:
        return self._projected([col(name) for name in self.columns if name not in names])

    def fillna(self, value: int, names: Sequence[str]) -> DataFrame:
        filled = (combined(f"coalesce({{}}, {literal(value)})", col(name)).alias(name) for name in names)
        by_name = {column.name: column for column in filled}
        return self._projected([by_name.get(name, col(name)) for name in self.columns])

    def where(self, condition: str | Column) -> DataFrame:
        sql = condition if isinstance(condition, str) else condition.sql
        before = self if isinstance(condition, str) else self._with_before([condition])
        return self._made(f"SELECT {_names(self.columns)} FROM ({before._sql}) AS t WHERE {sql}", self.columns)

    def distinct(self) -> DataFrame:
        return self._made(f"SELECT DISTINCT {_names(self.columns)} FROM ({self._sql}) AS t", self.columns)

    def join(self, other: DataFrame, on: str | Sequence[str], how: str = "inner") -> DataFrame:
        keys = [on] if isinstance(on, str) else list(on)
        left = [name for name in self.columns if name not in keys]
        right = [] if how == "left_semi" else [name for name in other.columns if name not in keys]
        assert not {*left} & {*right}, "each name is in one of them"
        sides = (f"{side}.{quoted(name)}" for side, names in (("l", left), ("r", right)) for name in names)
        columns = [*map(quoted, keys), *sides]
        tables = f"({self._sql}) AS l {JOINS[how]} ({other._sql}) AS r USING ({_names(keys)})"
        return self._made(f"SELECT {', '.join(columns)} FROM {tables}", [*keys, *left, *right])

    def crossJoin(self, other: DataFrame) -> DataFrame:
        sql = f"SELECT * FROM ({self._sql}) AS l CROSS JOIN ({other._sql}) AS r"
        return self._made(sql, [*self.columns, *other.columns])

    def union(self, other: DataFrame) -> DataFrame:
        return self._made(f"{self._sql} UNION ALL {other._sql}", self.columns)

    def unionByName(self, other: DataFrame, *, allowMissingColumns: bool = False) -> DataFrame:
        missing = {*self.columns} ^ {*other.columns}
        assert allowMissingColumns or not missing, f"both have {missing}"
        columns = list(dict.fromkeys([*self.columns, *other.columns]))
        parts = (
            ", ".join(quoted(name) if name in part.columns else f"NULL AS {quoted(name)}" for name in columns)
            for part in (self, other)
        )
        first, second = parts
        sql = f"SELECT {first} FROM ({self._sql}) AS t UNION ALL SELECT {second} FROM ({other._sql}) AS t"
        return self._made(sql, columns)

    def groupBy(self, *keys: str | Column) -> GroupedData:
        return GroupedData(self, [named(key) for key in keys])

    def agg(self, *columns: Column) -> DataFrame:
        return self._projected(columns)

    def orderBy(self, *columns: str | Column | Ordering) -> DataFrame:
        """Return the sorted rows as a table, whose order later statements keep."""
        sql = f"SELECT {_names(self.columns)} FROM ({self._sql}) AS t ORDER BY {', '.join(orders(columns))}"
        return self._made(sql, self.columns).persist()

    def limit(self, count: int) -> DataFrame:
        return self._made(f"SELECT {_names(self.columns)} FROM ({self._sql}) AS t LIMIT {count:d}", self.columns)

    def persist(self) -> DataFrame:
        """Compute the rows once, as a table."""
        return self.sparkSession.as_table(self)

    def cache(self) -> DataFrame:
        return self.persist()

    def unpersist(self) -> None:
        """Do nothing: the tables end with the session."""

    def count(self) -> int:
        counted: int = self.sparkSession.fetch(f"SELECT count(*) FROM ({self._sql}) AS t")[0][0]
        return counted

    def isEmpty(self) -> bool:
        return self.limit(1).count() == 0

    def collect(self) -> list[Row]:
        rows = self.toArrow()
        names = tuple(rows.column_names)
        columns = [column.to_pylist() for column in rows.columns]
        return [Row.made(names, values) for values in zip(*columns, strict=True)]

    def toLocalIterator(self) -> Iterator[Row]:
        return iter(self.collect())

    def toArrow(self) -> pa.Table:
        return self.sparkSession.to_arrow(self._sql)

    @property
    def write(self) -> Writer:
        return Writer(self)

    def save_parquet(self, file: Path) -> None:
        """Write the rows to a new file."""
        target = literal(str(file))
        self.sparkSession.execute(f"COPY ({self._sql}) TO {target} (FORMAT parquet, COMPRESSION zstd)")

    def _projected(self, columns: Sequence[Column]) -> DataFrame:
        names = [column.name or f"_{number}" for number, column in enumerate(columns)]
        listed = (
            column.sql if column.generates and column.name is None else f"{column.sql} AS {quoted(name)}"
            for column, name in zip(columns, names, strict=True)
        )
        sql = f"SELECT {', '.join(listed)} FROM ({self._with_before(columns)._sql}) AS t"
        if any(column.generates for column in columns):
            names = [row[0] for row in self.sparkSession.fetch(f"DESCRIBE {sql}")]
        return self._made(sql, names)

    def _with_before(self, columns: Sequence[Column]) -> DataFrame:
        """Return the rows with the columns that have to be computed before some others."""
        rows = self
        for name, sql in dict.fromkeys(pair for column in columns for pair in column.before):
            rows = self._made(f"SELECT *, {sql} AS {quoted(name)} FROM ({rows._sql}) AS t", [*rows.columns, name])
        return rows

    def _made(self, sql: str, columns: Sequence[str]) -> DataFrame:
        return DataFrame(self.sparkSession, sql, columns)


class GroupedData:
    """Rows by the values of some columns."""

    def __init__(self, rows: DataFrame, keys: Sequence[Column]) -> None:
        self._rows: DataFrame = rows
        self._keys: Sequence[Column] = keys

    def agg(self, *columns: Column) -> DataFrame:
        made = self._rows._projected([*self._keys, *columns])
        numbers = ", ".join(str(number + 1) for number in range(len(self._keys)))
        return made._made(f"{made._sql} GROUP BY {numbers}", made.columns)

    def count(self) -> DataFrame:
        return self.agg(Column("count(*)", "count"))


class Writer:
    """Writes rows to a directory of Parquet, zstd."""

    def __init__(self, rows: DataFrame) -> None:
        self._rows: DataFrame = rows

    def mode(self, mode: str) -> Writer:
        assert mode == "errorifexists", "the only mode of the commands"
        return self

    def option(self, name: str, value: str) -> Writer:
        assert (name, value) == ("compression", "zstd"), "the only compression of the commands"
        return self

    def parquet(self, uri: str) -> None:
        from kproto.logs.locations import local_path

        folder = local_path(uri)
        folder.mkdir()
        self._rows.save_parquet(folder / "part-0.zstd.parquet")


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))
