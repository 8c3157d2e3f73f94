"""Write rows as a table for the terminal, CSV, JSON lines or Parquet.

Timestamps are written like 2026-11-21T09:30:00.000Z, bytes as hexadecimal digits; in Parquet both keep their types.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from codecs import lookup
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from kproto.logs.locations import is_remote
from kproto.logs.remote import WRITE_BYTES, RemotePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TextIO

    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS = ("table", "csv", "jsonl", "parquet")
TABLE_ROWS = 40
"""The default number of rows of a table: about a screen."""
NULL = "-"
EMPTY = '""'
"""The empty group id, which simple consumers may use."""
RIGHT = ("int", "bigint", "smallint", "double")


def ordered(rows: DataFrame, order: Sequence[str]) -> DataFrame:
    """Return the rows sorted by these columns; a minus sorts in descending order. Nulls come last."""
    from kproto.spark.engine import F

    def by(name: str) -> Column:
        column = F.col(name.removeprefix("-"))
        return column.desc_nulls_last() if name.startswith("-") else column.asc_nulls_last()

    return rows.orderBy(*map(by, order))


def write(rows: DataFrame, form: str, output: str | None, limit: int | None) -> str | None:
    """Write rows in one of `FORMATS`; return a note for the user, if there is one.

    Raises:
        OSError: the output cannot be written.
    """
    if form == "parquet":
        assert output is not None, "the command line was checked"
        target = rows if limit is None else rows.limit(limit)
        parquet_as_declared(rows.sparkSession)
        target.write.mode("errorifexists").option("compression", "zstd").parquet(spark_path(Path(output)))
        return None
    values = _as_text(rows)
    with _opened(output) as stream:
        if form == "table":
            return _table(values, rows.dtypes, stream, limit or TABLE_ROWS)
        found = (values if limit is None else values.limit(limit)).toLocalIterator()
        _csv(values.columns, found, stream) if form == "csv" else _json_lines(values.columns, found, stream)
    return None


def write_text(output: str, text: str) -> None:
    """Write a text to a file or URI.

    Raises:
        OSError, StoreError: the output cannot be written.
    """
    with _opened(output) as stream:
        stream.write(text)


def parquet_as_declared(spark: SparkSession) -> None:
    """Set a session to write timestamps as microseconds in UTC; the default, INT96, declares neither."""
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")


def spark_path(path: Path) -> str:
    """Return a path of this machine as a URI of Hadoop, which escapes nothing: in `Path.as_uri`, a space is ``%20``."""
    return f"file://{path.absolute()}"


def not_a_glob(path: Path) -> str:
    """Return a path of this machine as Spark's readers need it, which look for patterns in paths."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", spark_path(path))


def time_text(moment: datetime) -> str:
    """Return the text of a timestamp, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def printable(text: str) -> str:
    """Return text without line breaks and control characters: a group id must not control the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _as_text(rows: DataFrame) -> DataFrame:
    from kproto.spark.engine import F

    def written(name: str, kind: str) -> Column:
        if kind == "timestamp":
            return F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").alias(name)
        return F.lower(F.hex(name)).alias(name) if kind == "binary" else F.col(name)

    return rows.select(*(written(name, kind) for name, kind in rows.dtypes))


def _table(rows: DataFrame, types: Sequence[tuple[str, str]], stream: TextIO, limit: int) -> str | None:
    found = rows.limit(limit + 1).collect()
    heads = rows.columns
    cells = [[_cell(value, head) for value, head in zip(row, heads, strict=True)] for row in found[:limit]]
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    sides = [kind in RIGHT for _, kind in types]
    for line in [heads, ["-" * width for width in widths], *cells]:
        parts = (t.rjust(w) if right else t.ljust(w) for t, w, right in zip(line, widths, sides, strict=True))
        stream.write("  ".join(parts).rstrip() + "\n")
    return (
        f"only the first {limit} rows are shown: --limit shows more, --format csv all" if len(found) > limit else None
    )


def _cell(value: Any, head: str) -> str:
    if value is None:
        return NULL
    if value == "" and head == "group_id":
        return EMPTY
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
    is_unicode = lookup(stream.encoding or "utf-8").name.startswith("utf")
    for row in rows:
        stream.write(json.dumps(dict(zip(heads, row, strict=True)), ensure_ascii=not is_unicode) + "\n")


@contextmanager
def _opened(output: str | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    if not is_remote(output):
        with Path(output).open("w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    with TemporaryFile() as file, TextIOWrapper(file, encoding="utf-8", newline="") as stream:
        yield stream
        stream.flush()
        file.seek(0)
        RemotePath(output).write(iter(partial(file.read, WRITE_BYTES), b""))  # whole, or not at all
