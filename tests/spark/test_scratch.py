"""Directories for rows: those of processes that were killed are removed, those of living processes never."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kproto.spark import scratch
from kproto.spark.embedded import EmbeddedSession
from kproto.spark.scratch import PREFIX, directory_for_rows

CHILD = """
import sys
from kproto.spark.scratch import directory_for_rows
with directory_for_rows(sys.argv[1]) as directory:
    (directory / "rows").write_text("rows")
    print(directory, flush=True)
    sys.stdin.read()
"""


@contextmanager
def process_with_rows(root: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a process that has a directory until it is killed, or its input ends."""
    command = [sys.executable, "-c", CHILD, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "it was asked for"
        yield process, Path(process.stdout.readline().strip())


def test_a_directory_of_a_killed_process_is_removed_and_one_of_a_living_process_stays(tmp_path: Path) -> None:
    others = [tmp_path / "kproto-other", tmp_path / f"{PREFIX}file"]
    others[0].mkdir()
    others[1].touch()
    (tmp_path / f"{PREFIX}link").symlink_to(others[0])
    with process_with_rows(tmp_path) as (killed, left), process_with_rows(tmp_path) as (_, living):
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (left / "rows").exists()
        with directory_for_rows(str(tmp_path)) as own, directory_for_rows(str(tmp_path)) as second:
            assert not left.exists()
            assert {own, second, living}.issubset(tmp_path.iterdir())
            assert (living / "rows").exists()
    assert {*tmp_path.iterdir()} == {*others, tmp_path / f"{PREFIX}link"}


def test_a_directory_that_another_command_removes_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    lock = scratch._lock

    def found_by_another(directory: Path) -> int:
        made.append(directory)
        if len(made) == 1:  # it is removed before it is opened
            directory.rmdir()
        descriptor = lock(directory)
        if len(made) == 2:  # and then before it is locked
            directory.rmdir()
        return descriptor

    monkeypatch.setattr(scratch, "_lock", found_by_another)
    with directory_for_rows(str(tmp_path)) as directory:
        assert directory == made[2]
        assert [*tmp_path.iterdir()] == [directory]


def test_without_locks_nothing_of_others_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_directory: Path) -> int:
        raise OSError(scratch.NO_LOCKS[0], os.strerror(scratch.NO_LOCKS[0]))

    monkeypatch.setattr(scratch, "_lock", no_locks)
    with directory_for_rows(str(tmp_path)) as first, directory_for_rows(str(tmp_path)) as second:
        assert {*tmp_path.iterdir()} == {first, second}
    assert [*tmp_path.iterdir()] == []


def test_the_embedded_engine_writes_rows_that_exceed_its_memory_to_such_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    session: Any = EmbeddedSession()
    (folder,) = tmp_path.iterdir()
    assert session.fetch("SELECT current_setting('temp_directory')") == [(str(folder / "duckdb"),)]
    session.stop()
    assert [*tmp_path.iterdir()] == []
