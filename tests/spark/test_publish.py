"""A writer of tables may die at any step, and be followed by another one: what is in place is then all or nothing new.

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
    """Nothing in the product catches this."""


class Steps:
    """Counts what is done to the disk; dies at one of the steps, before it happens."""

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


def in_place(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*.parquet") if "_kproto" not in path.parts)


def test_a_writer_that_dies_at_any_step_leaves_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    whole = tmp_path / "whole"
    write(whole, 1)
    first = in_place(whole)
    write(whole, 2)
    both = in_place(whole)
    assert (len(first), len(both)) == (3, 6)
    seen = set()
    for step in count():
        root = tmp_path / str(step)
        write(root, 1)
        steps.die_at(step)
        try:
            write(root, 2)
        except Died:
            seen.add(len(in_place(root)))
            steps.die_at(-1)
            with Publication(root).writing():
                assert in_place(root) in (first, both)
            write(root, 2)
            assert in_place(root) == both
            assert Publication(root).state()["run"] == 2
        else:
            break
    assert seen == {3, 4, 5, 6}
    assert step > 12


def test_who_dies_while_finishing_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    for second in range(1, 8):
        root = tmp_path / str(second)
        steps.die_at(4)
        with pytest.raises(Died):
            write(root, 1)
        with pytest.raises(TablesError, match="did not finish; `tables` finishes it"):
            Publication(root).state()
        steps.die_at(second)
        with pytest.raises(Died):
            write(root, 1)
        steps.die_at(-1)
        write(root, 1)
        assert len(in_place(root)) == 3


def test_a_file_of_the_same_name_is_the_former_one_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)

    def replace(root: Path, text: str) -> None:
        publication = Publication(root)
        with publication.writing():
            for name in ("lag", "rates"):
                (publication.staged / name).mkdir(parents=True)
                (publication.staged / name / f"{name}.parquet").write_text(text)
            publication.publish({})

    def found(root: Path) -> tuple[str, ...]:
        return tuple((root / name).read_text() for name in in_place(root))

    seen = set()
    for step in count():
        root = tmp_path / str(step)
        replace(root, "former")
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
    assert seen == {("former", "former"), ("new", "former"), ("new", "new")}


def test_there_is_one_writer(tmp_path: Path) -> None:
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
