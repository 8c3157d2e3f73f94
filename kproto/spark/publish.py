"""Publish files into a directory, all or none from the next writer's point of view: a redo log of renames.

Theory of operation. Spark writes new files into `_kproto/staged`, where readers do not look. One rename creates
`_kproto/intent.json`, which lists the staged files and the state after the write: from here on the write has happened.
Then the files are renamed to their final paths, those that they replace are removed, the state is written, and the
intent is removed. A writer that finds an intent repeats these last steps; a file that is no longer staged is at its
final path already. A writer that finds staged files without an intent deletes them, and the content of
`_kproto/scratch` too.

A writer that dies at any step therefore leaves nothing that the next one would add a second time. Until a write is
finished, a reader may see some of its files and not others.

The directory has to be on a file system with atomic renames: a local one, or one that all machines of a cluster mount.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kproto.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

State = dict[str, Any]

OWN = "_kproto"
"""The directory beside the tables that readers skip: Spark, pandas and DuckDB's globs skip names with an underscore."""
SCHEMA = 1
"""The `schema` of the state; a change that breaks readers increments it."""


class TablesError(LogError):
    """A directory of tables cannot be read or written; the text is one line for the user."""


class Publication:
    """The files of one directory and their state."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._own = root / OWN
        self.staged: Path = self._own / "staged"
        self.scratch: Path = self._own / "scratch"
        self._intent = self._own / "intent.json"
        self._state = self._own / "state.json"

    def exists(self) -> bool:
        """Return whether anything was published here."""
        return self._state.exists() or self._intent.exists()

    def state(self) -> State:
        """Return the state after the last write; empty before the first one.

        Raises:
            TablesError: another version of kproto wrote it, or the last write did not finish.
        """
        if self._intent.exists():
            raise TablesError(f"{self.root}: the last write did not finish; running `tables` finishes it")
        if not self._state.exists():
            return {}
        state: State = json.loads(self._state.read_text(encoding="utf-8"))
        if state.get("schema") != SCHEMA:
            raise TablesError(f"{self.root}: written by another version of kproto; write to a new directory")
        return state

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of the directory; first finish the write of a process that died.

        Raises:
            TablesError: another process holds the lock.
        """
        import fcntl  # here: Windows has no fcntl, and the rest of this package works there

        self._own.mkdir(parents=True, exist_ok=True)
        with (self._own / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TablesError(f"{self.root}: another `tables` is writing there") from None
            self._finish()
            yield

    def publish(self, state: State, removed: Sequence[Path] = ()) -> None:
        """Rename all Parquet files in `staged` to their final paths, remove what they replace, and write the state."""
        names = sorted(str(path.relative_to(self.staged)) for path in self.staged.rglob("*.parquet"))
        old = [str(path.relative_to(self.root)) for path in removed]
        _write(self._intent, {"files": names, "removed": old, "state": {"schema": SCHEMA, **state}})
        self._finish()

    def _finish(self) -> None:
        if self._intent.exists():
            intent = json.loads(self._intent.read_text(encoding="utf-8"))
            for name in intent["files"]:
                self._move(name)
            removed = intent.get("removed", [])  # older versions of kproto remove none
            for name in removed:
                (self.root / name).unlink(missing_ok=True)
            for folder in {(self.root / name).parent for name in (*intent["files"], *removed)}:
                _sync(folder)
            _write(self._state, intent["state"])
            self._intent.unlink()
            _sync(self._own)
        for folder in (self.staged, self.scratch):
            if folder.exists():
                shutil.rmtree(folder)

    def _move(self, name: str) -> None:
        staged, final = self.staged / name, self.root / name
        if not staged.exists():
            return  # the writer that left the intent moved it
        final.parent.mkdir(parents=True, exist_ok=True)
        _sync(staged)
        staged.replace(final)


def _write(path: Path, content: State) -> None:
    """Write a file completely or not at all, and sync it."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")
    _sync(beside)
    beside.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
