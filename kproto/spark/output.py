"""Rows for people and programs: a table on the terminal, CSV, JSON lines, or Parquet.

Times are written as 2026-11-21T09:30:00.000Z, bytes as hexadecimal digits. Parquet has both as they are.
"""

from __future__ import annotations

import csv
import json
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TextIO

    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS = ("table", "csv", "jsonl", "parquet")
TABLE_ROWS = 40
"""What a table shows unless told: more than a screen is not read."""
NULL = "-"
RIGHT = ("int", "bigint", "smallint", "double")


def ordered(rows: DataFrame, order: Sequence[str]) -> DataFrame:
    """Return the rows sorted by these columns; with a minus, falling. Nulls come last."""
    from pyspark.sql import functions as F

    def by(name: str) -> Column:
        column = F.col(name.removeprefix("-"))
        return column.desc_nulls_last() if name.startswith("-") else column.asc_nulls_last()

    return rows.orderBy(*map(by, order))


def write(rows: DataFrame, form: str, output: str | None, limit: int | None) -> str | None:
    """Write rows in one of `FORMATS`; return what is to be said beside them, if anything.

    Raises:
        OSError: the output can't be written.
    """
    if form == "parquet":
        assert output is not None, "the command line was checked"
        target = rows if limit is None else rows.limit(limit)
        parquet_as_declared(rows.sparkSession)
        target.write.mode("errorifexists").option("compression", "zstd").parquet(Path(output).absolute().as_uri())
        return None
    plain = _plain(rows)
    with _opened(output) as stream:
        if form == "table":
            return _table(plain, rows.dtypes, stream, limit or TABLE_ROWS)
        found = (plain if limit is None else plain.limit(limit)).toLocalIterator()
        _csv(plain.columns, found, stream) if form == "csv" else _json_lines(plain.columns, found, stream)
    return None


def parquet_as_declared(spark: SparkSession) -> None:
    """Have a session write times as microseconds of UTC; by default they are INT96, which says neither."""
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")


def told(moment: datetime) -> str:
    """Return a time as it is written, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def printable(text: str) -> str:
    """A stranger's text on one line, without control characters: a group id must not steer a terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _plain(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    def written(name: str, kind: str) -> Column:
        if kind == "timestamp":
            return F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").alias(name)
        return F.lower(F.hex(name)).alias(name) if kind == "binary" else F.col(name)

    return rows.select(*(written(name, kind) for name, kind in rows.dtypes))


def _table(rows: DataFrame, types: Sequence[tuple[str, str]], stream: TextIO, limit: int) -> str | None:
    found = rows.limit(limit + 1).collect()
    cells = [[_cell(value) for value in row] for row in found[:limit]]
    heads = rows.columns
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    sides = [kind in RIGHT for _, kind in types]
    for line in [heads, ["-" * width for width in widths], *cells]:
        parts = (t.rjust(w) if right else t.ljust(w) for t, w, right in zip(line, widths, sides, strict=True))
        stream.write("  ".join(parts).rstrip() + "\n")
    return f"these are the first {limit} rows: --limit shows more, --format csv all" if len(found) > limit else None


def _cell(value: Any) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return printable(str(value))


def _csv(heads: Sequence[str], rows: Iterable[Sequence[Any]], stream: TextIO) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heads)
    for row in rows:
        writer.writerow(json.dumps(value) if isinstance(value, list | bool) else value for value in row)


def _json_lines(heads: Sequence[str], rows: Iterable[Sequence[Any]], stream: TextIO) -> None:
    for row in rows:
        stream.write(json.dumps(dict(zip(heads, row, strict=True)), ensure_ascii=False) + "\n")


@contextmanager
def _opened(output: str | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with Path(output).open("w", encoding="utf-8", newline="") as stream:
        yield stream
