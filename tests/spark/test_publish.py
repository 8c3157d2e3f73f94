"""After a writer of tables died at any step, the next writer finds all of its files or none.

Method: every rename, removal and fsync is counted, and the writer dies at each of them in turn.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kproto.spark.publish import Publication, TablesError


class Died(BaseException):
    """The writer dies; a BaseException, so that no handler catches it."""


class Steps:
    """Counts the steps that change the disk; raises `Died` before one of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left: Iterator[bool] = iter(())
        for owner, name in ((Path, "replace"), (Path, "unlink"), (shutil, "rmtree"), (os, "fsync")):
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def die_at(self, step: int) -> None:
        self.left = (number == step for number in count())

    def _counted(self, action: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any, **named: Any) -> Any:
            if next(self.left, False):
                raise Died
            return action(*arguments, **named)

        return act


def stage(publication: Publication, run: int) -> None:
    for name in ("commits/date=2026-11-20", "commits/date=2026-11-21", "log_batches/date=2026-11-21"):
        folder = publication.staged / name
        folder.mkdir(parents=True)
        (folder / f"part-{run}.parquet").write_text(f"rows of run {run}")
        (folder / "_SUCCESS").touch()


def write(root: Path, run: int) -> None:
    publication = Publication(root)
    with publication.writing():
        if publication.state().get("run", 0) >= run:
            return
        stage(publication, run)
        publication.publish({"run": run})


def published(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*.parquet") if "_kproto" not in path.parts)


def test_a_writer_that_dies_at_any_step_adds_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    whole = tmp_path / "whole"
    write(whole, 1)
    first = published(whole)
    write(whole, 2)
    both = published(whole)
    assert (len(first), len(both)) == (3, 6)
    seen = set()
    for step in count():
        root = tmp_path / str(step)
        write(root, 1)
        steps.die_at(step)
        try:
            write(root, 2)
        except Died:
            seen.add(len(published(root)))
            steps.die_at(-1)
            with Publication(root).writing():
                assert published(root) in (first, both)
            write(root, 2)
            assert published(root) == both
            assert Publication(root).state()["run"] == 2
        else:
            break
    assert seen == {3, 4, 5, 6}
    assert step > 12


def test_a_writer_that_dies_while_finishing_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)
    for second in range(1, 8):
        root = tmp_path / str(second)
        steps.die_at(4)
        with pytest.raises(Died):
            write(root, 1)
        with pytest.raises(TablesError, match="did not finish; running `tables` finishes it"):
            Publication(root).state()
        steps.die_at(second)
        with pytest.raises(Died):
            write(root, 1)
        steps.die_at(-1)
        write(root, 1)
        assert len(published(root)) == 3


def test_a_replaced_file_is_the_old_one_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)

    def replace(root: Path, text: str) -> None:
        publication = Publication(root)
        with publication.writing():
            for name in ("lag", "rates"):
                (publication.staged / name).mkdir(parents=True)
                (publication.staged / name / f"{name}.parquet").write_text(text)
            publication.publish({})

    def found(root: Path) -> tuple[str, ...]:
        return tuple((root / name).read_text() for name in published(root))

    seen = set()
    for step in count():
        root = tmp_path / str(step)
        replace(root, "old")
        steps.die_at(step)
        try:
            replace(root, "new")
        except Died:
            seen.add(found(root))
            steps.die_at(-1)
            replace(root, "newest")
            assert found(root) == ("newest", "newest")
        else:
            break
    assert seen == {("old", "old"), ("new", "old"), ("new", "new")}


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with (
        Publication(tmp_path).writing(),
        pytest.raises(TablesError, match="another `tables` is writing there"),
        Publication(tmp_path).writing(),
    ):
        pass


def test_tables_of_another_version_are_refused(tmp_path: Path) -> None:
    publication = Publication(tmp_path)
    with publication.writing():
        publication.publish({"schema": 99})
    with pytest.raises(TablesError, match="another version of kproto"):
        publication.state()


def test_files_that_replace_others_are_published_with_their_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)

    def compact(root: Path) -> None:
        publication = Publication(root)
        with publication.writing():
            old = [root / name for name in published(root)]
            if len(old) == 1:
                return
            (publication.staged / "commits").mkdir(parents=True)
            (publication.staged / "commits" / "part-all.parquet").write_text("all rows")
            publication.publish(publication.state(), old)

    for step in count():
        root = tmp_path / str(step)
        write(root, 1)
        steps.die_at(step)
        try:
            compact(root)
        except Died:
            steps.die_at(-1)
            with Publication(root).writing():
                assert len(published(root)) in (1, 3), "none of the files, or all"
            compact(root)
            assert published(root) == ["commits/part-all.parquet"]
            assert Publication(root).state()["run"] == 1
        else:
            break
    assert step > 10
