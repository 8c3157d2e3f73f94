"""Parquet tables in an object store: of overlapping runs one commits, and files of a run that died are never rows.

Spark runs the functions that write and read files on its workers; here they run in this process. `test_cluster` has
them on workers that share no directory.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from kproto.arrow.schemas import COMMITS, LATEST
from kproto.logs.remote import RemotePath, StoreError
from kproto.spark import store_files, store_tables
from kproto.spark.embedded import EmbeddedSession
from kproto.spark.engine import EMBEDDED, using
from kproto.spark.publish import TablesError
from kproto.spark.store_manifest import size_in_store
from kproto.spark.store_tables import StoreTables
from kproto.spark.tables import GROWING
from tests.requirements import need_package
from tests.spark.rows import commit, frame

(OF_COMMITS,) = (grown for grown in GROWING if grown.table is COMMITS)


class Died(BaseException):
    """A run dies."""


class Rows:
    """The part of Spark's DataFrame that writes, on rows in memory."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def mapInArrow(self, function: Callable[..., Iterator[pa.RecordBatch]], _schema: str) -> Rows:
        return Rows(pa.Table.from_batches(function(iter(self._table.to_batches()))))

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self._table.to_pylist()]


@pytest.fixture
def tables() -> Iterator[StoreTables]:
    need_package("fsspec")
    session: Any = EmbeddedSession()
    with using(EMBEDDED):
        yield StoreTables(session, f"memory://{uuid.uuid4()}")
    session.stop()


def rows(tables: StoreTables, *offsets: int) -> Any:
    """Return commits of two days."""
    commits = frame(tables.spark, COMMITS, [commit(one, "g", "t", 0, one) for one in offsets]).toArrow()
    days = pa.array([date(2026, 11, 20 + one % 2) for one in offsets])
    return Rows(commits.append_column("date", days))


def offsets(tables: StoreTables) -> list[int]:
    return sorted(row["log_offset"] for row in tables.read(COMMITS).toArrow().to_pylist())


def files(tables: StoreTables) -> set[str]:
    """Return the names of all Parquet files of the commits."""
    return {
        str(file).removeprefix(f"{tables.root}/commits/")
        for folder in RemotePath(f"{tables.root}/commits").iterdir()
        for file in folder.iterdir()
        if file.suffix == ".parquet"
    }


def append(tables: StoreTables, *offsets: int) -> int:
    return tables.append(COMMITS, rows(tables, *offsets), tables.version(COMMITS.name), f"note {offsets[0]}")


def die(*_arguments: object) -> bool:
    raise Died


def test_rows_of_more_dates_than_open_files(tables: StoreTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_files, "OPEN_MAX", 1)
    assert append(tables, 0, 1, 2) == 3
    assert offsets(tables) == [0, 1, 2]
    assert (len(files(tables)), tables.marks(OF_COMMITS)) == (2, {(0,): 2})


def test_versions_add_rows_and_know_what_they_have(tables: StoreTables) -> None:
    assert tables.version(COMMITS.name) is None
    assert append(tables, 0, 1, 2) == 3
    assert append(tables, 3) == 1
    assert offsets(tables) == [0, 1, 2, 3]
    assert (tables.version(COMMITS.name), tables.notes(COMMITS.name)) == (1, ["note 3"])
    assert tables.marks(OF_COMMITS) == {(0,): 3}
    count, size = tables.size()
    assert (count, size) == (3, size_in_store(tables.root))
    assert {name.partition("/")[0] for name in files(tables)} == {"date=2026-11-20", "date=2026-11-21"}


def test_of_two_runs_that_overlap_the_second_fails(tables: StoreTables) -> None:
    before = tables.version(COMMITS.name)
    append(tables, 0, 1)
    with pytest.raises(TablesError, match="another `tables` wrote there meanwhile: run it again for the rest"):
        tables.append(COMMITS, rows(tables, 0, 1), before, "late")
    assert offsets(tables) == [0, 1]


def test_files_of_a_run_that_died_are_no_rows_and_are_removed(
    tables: StoreTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tables, 0)
    with monkeypatch.context() as patch:
        patch.setattr(RemotePath, "create", die)
        with pytest.raises(Died):
            append(tables, 1, 2)
    left = files(tables)
    assert (offsets(tables), len(left)) == ([0], 3)
    tables.compact(COMMITS.name)
    assert files(tables) == left, "a run that writes the next version may be at work"
    append(tables, 1, 2)
    assert (offsets(tables), len(files(tables))) == ([0, 1, 2], 5)
    monkeypatch.setattr(store_tables, "_small_files", lambda _files: [])
    assert tables.compact(COMMITS.name) == 0
    assert (offsets(tables), len(files(tables))) == ([0, 1, 2], 3)


def test_files_that_were_replaced_stay_for_readers_of_the_version_before(
    tables: StoreTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_dates(_grown: object, small: Any, _bytes: int) -> Any:
        return rows(tables, *(row["log_offset"] for row in small.toArrow().to_pylist()))

    monkeypatch.setattr(store_tables, "in_large_files", with_dates)
    for offset in (0, 2, 4):
        append(tables, offset)
    assert tables.compact(COMMITS.name) == 2
    assert (offsets(tables), len(files(tables)), tables.size()[0]) == ([0, 2, 4], 4, 1)
    assert tables.notes(COMMITS.name) == ["note 4"]
    assert tables.compact(COMMITS.name) == 0
    append(tables, 6)
    assert (offsets(tables), len(files(tables))) == ([0, 2, 4, 6], 2)


def test_a_store_that_ignores_the_condition_is_refused(tables: StoreTables, monkeypatch: pytest.MonkeyPatch) -> None:
    def ignoring(path: RemotePath, data: bytes) -> bool:
        path.write([data])
        return True

    monkeypatch.setattr(RemotePath, "create", ignoring)
    with pytest.raises(StoreError, match="the store overwrites an object that it should only create"):
        append(tables, 0)


def test_old_manifests_are_removed(tables: StoreTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_tables, "MANIFESTS_KEPT", 3)
    for offset in range(6):
        append(tables, offset)
    assert len(RemotePath(f"{tables.root}/commits/_kproto").names()) == 3
    assert offsets(tables) == list(range(6))


def test_a_derived_table_is_replaced(tables: StoreTables) -> None:
    def latest(offset: int) -> Any:
        row = {"group_id": "g", "topic": "t", "partition": 0, "committed_offset": offset}
        return Rows(frame(tables.spark, LATEST, [dict.fromkeys(LATEST.names) | row]).toArrow())

    for offset in (1, 2):
        assert tables.replace(LATEST, latest(offset)) == 1
        (row,) = tables.read(LATEST).toArrow().to_pylist()
        assert row["committed_offset"] == offset


def test_a_manifest_of_another_version_is_refused(tables: StoreTables) -> None:
    append(tables, 0)
    path = RemotePath(f"{tables.root}/commits/_kproto/{1:020}.json")
    assert path.create(b'{"schema": 99}')
    with pytest.raises(TablesError, match="another version of kproto"):
        tables.read(COMMITS)
