"""Tasks write the rows of a scan to files: once, by day, complete or not at all; what reads them gets the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES
from kproto.spark import tables
from kproto.spark.log_input import FiledInput, LogInput, ScannedInput
from kproto.spark.source import kept
from kproto.spark.source.kept import Writer, combine_small, merge
from tests.fixture_files import offsets_log

DAY_US = 24 * 3600 * 1_000_000
TABLES = (COMMITS, GROUP_METADATA, LOG_BATCHES)
NAMES = tuple(table.name for table in TABLES)


def batches(*max_us: int | None) -> pa.RecordBatch:
    rows = [{"topic": "t", "partition": 0, "last_offset": number, "max_ts": us} for number, us in enumerate(max_us)]
    return pa.RecordBatch.from_pylist(rows, schema=LOG_BATCHES.arrow())


def written(folder: Path) -> dict[str, list[int]]:
    """Return the offsets in each file, in order."""
    files = sorted(folder.rglob("*.parquet"))
    return {str(path.relative_to(folder)): pq.read_table(path)["last_offset"].to_pylist() for path in files}


def write(folder: Path, *parts: pa.RecordBatch, day_of: str | None = "max_ts") -> Writer:
    writer = Writer(LOG_BATCHES, folder, "t-0-17", day_of=day_of)
    for rows in parts:
        writer.add(rows)
    return writer


def test_each_day_has_a_file_in_utc(tmp_path: Path) -> None:
    write(tmp_path, batches(DAY_US - 1, None, DAY_US), batches(-1, DAY_US + 1, DAY_US)).close()
    assert written(tmp_path / "log_batches") == {
        "date=1969-12-31/part-t-0-17.parquet": [0],
        "date=1970-01-01/part-t-0-17.parquet": [0, 1],
        "date=1970-01-02/part-t-0-17.parquet": [2, 1, 2],
    }
    write(tmp_path / "all", batches(DAY_US - 1, None, DAY_US), day_of=None).close()
    assert written(tmp_path / "all") == {"log_batches/part-t-0-17.parquet": [0, 1, 2]}


@pytest.mark.parametrize("rows_max", [1, 1000])
def test_of_many_days_few_files_are_open(rows_max: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "ROWS_MAX", rows_max)
    monkeypatch.setattr(kept, "OPEN_MAX", 2)
    open_files: set[Any] = set()
    most = 0

    class Watched(pq.ParquetWriter):  # type: ignore[misc]  # pyarrow has no types
        def __init__(self, *args: Any, **options: Any) -> None:
            nonlocal most
            super().__init__(*args, **options)
            open_files.add(self)
            most = max(most, len(open_files))

        def close(self) -> None:
            super().close()
            open_files.discard(self)

    monkeypatch.setattr(pq, "ParquetWriter", Watched)
    days = [number * DAY_US for number in range(5)]
    write(tmp_path, batches(*days), batches(*reversed(days))).close()
    assert list(written(tmp_path / "log_batches").values()) == [[number, 4 - number] for number in range(5)]
    assert (most, open_files) == (2, set())


def test_of_a_repeated_task_there_is_one_file_and_of_one_that_died_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "ROWS_MAX", 2)  # each call writes
    write(tmp_path, batches(0, 1), batches(2, 3))
    assert written(tmp_path) == {}
    for _ in range(2):
        write(tmp_path, batches(0, 1), batches(2, 3)).close()
    assert written(tmp_path) == {"log_batches/date=1970-01-01/part-t-0-17.parquet": [0, 1, 0, 1]}


def test_merged_files_have_all_rows_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "1", batches(*range(5))).close()
    write(tmp_path / "2", batches(*range(3))).close()
    monkeypatch.setattr(kept, "ROWS_MAX", 2)
    target = tmp_path / "merged" / "one.parquet"
    merge(sorted(map(str, tmp_path.rglob("*.parquet"))), str(target))
    assert list(target.parent.iterdir()) == [target]
    assert written(tmp_path / "merged") == {"one.parquet": [0, 1, 2, 3, 4, 0, 1, 2]}
    metadata = pq.ParquetFile(target).metadata
    assert (metadata.num_row_groups, metadata.row_group(0).column(0).compression) == (4, "ZSTD")


def test_small_files_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "log_batches"
    combine_small(folder)  # no task had rows of the table
    for task in ("a", "b", "c"):
        writer = Writer(LOG_BATCHES, tmp_path, task, day_of=None)
        writer.add(batches(*range(2)))
        writer.close()
    size = sum(path.stat().st_size for path in folder.iterdir())
    monkeypatch.setattr(kept, "SMALL_BYTES", size - 1)
    combine_small(folder)
    assert {*written(tmp_path)} == {f"log_batches/part-{task}.parquet" for task in ("a", "b", "c")}
    monkeypatch.setattr(kept, "SMALL_BYTES", size)
    for _ in range(2):
        combine_small(folder)
        assert written(tmp_path) == {"log_batches/all.parquet": [0, 1, 0, 1, 0, 1]}


def test_rows_in_files_are_those_that_spark_keeps(spark: SparkSession, tmp_path: Path) -> None:
    """A log with an open transaction, and one with topics that have no batches; a mark leaves rows out."""
    for number, situation in enumerate(("open-transaction", "no-records")):
        log = LogInput(spark, str(offsets_log(situation, "2.8.2")))
        after: dict[str, tables.Marks] = {COMMITS.name: {(0,): 1}} if number == 0 else {}
        in_memory = ScannedInput(log, NAMES, after)
        in_files = FiledInput(log, NAMES, after, tmp_path / str(number))
        for table in TABLES:
            assertDataFrameEqual(in_files.table(table.name), in_memory.table(table.name))
        assert in_files.coverage == in_memory.coverage
        by_date = tmp_path / f"{number}-by-date"
        dated = log.to_files(by_date, {})
        for table in TABLES:
            assertDataFrameEqual(dated.table(table.name).select(*table.names), log.table(table.name))
        assert {path.parent.name[:5] for path in by_date.rglob("*.parquet")} == {"date="}
        in_memory.rows.unpersist()


def test_files_are_gone_after_the_job(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/nowhere")
    log = LogInput(spark, str(offsets_log("open-transaction", "2.8.2")))
    with log.read_once("commits") as read:
        assert read.commits.count() == 5
        assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_log_in_files_becomes_the_tables_that_spark_would_write(spark: SparkSession, tmp_path: Path) -> None:
    """An open transaction: rows from its first commit on wait, and a second run adds nothing."""
    log = LogInput(spark, str(offsets_log("open-transaction", "2.8.2")))

    def read(folder: Path, marks: Any) -> tables.Source:
        found = log.to_files(folder, marks)
        return tables.Source(log.table, found.coverage.ends, found.origin, log.topic_ends, folder)

    by_spark = tables.write_parquet(spark, tables.Source(log.table, log.coverage.ends, log.origin), tmp_path / "spark")
    for expected in (by_spark, {name: tables.Added(0, by_spark[name].waiting) for name in NAMES}):
        assert tables.read_and_write_parquet(spark, read, tmp_path / "files") == expected
    for table in TABLES:
        in_files, in_spark = (tables.read(spark, tmp_path / name, table) for name in ("files", "spark"))
        assertDataFrameEqual(in_files, in_spark)
    folders = {path.parent.name for path in (tmp_path / "files").glob("commits/*/*")}
    assert folders == {path.parent.name for path in (tmp_path / "spark").glob("commits/*/*.parquet")}
