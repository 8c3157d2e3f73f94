"""Files that appear in a directory all or none, as far as the next writer is concerned: a redo log of renames.

Theory of operation. Spark writes new files into `_kproto/staged`, where no reader looks. What is to become of them, and
the state that holds once they are in place, is written to `_kproto/intent.json` in one rename: from here on the write
has happened. Then the files are renamed to their places, the state is written, and the intent taken away. Whoever
finds an intent does these last steps again: a file that is not staged any more is in its place already. Whoever finds
staged files without an intent throws them away, and so what is in `_kproto/scratch`.

So a writer that dies leaves nothing that the next one would add twice, whatever step it died at. A reader may see some
of the files earlier than the others, until the write is finished.

This is for a file system with renames: one of this machine, or one mounted by all machines of a cluster.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kproto.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

State = dict[str, Any]

SCHEMA = 1
"""`schema` of the state; a change that breaks readers raises it."""


class TablesError(LogError):
    """A directory of tables can't be read or written; the text is one line for the user."""


class Publication:
    """The files of one directory, and the state that goes with them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._own = root / "_kproto"  # Spark, pandas and DuckDB's globs by default skip names with an underscore
        self.staged: Path = self._own / "staged"
        self.scratch: Path = self._own / "scratch"
        self._intent = self._own / "intent.json"
        self._state = self._own / "state.json"

    def exists(self) -> bool:
        """Whether anything was published here."""
        return self._state.exists() or self._intent.exists()

    def state(self) -> State:
        """Return what the last finished write left; empty before the first.

        Raises:
            TablesError: it is of another version of kproto, or the last write is not finished.
        """
        if self._intent.exists():
            raise TablesError(f"{self.root}: the last write did not finish; `tables` finishes it")
        if not self._state.exists():
            return {}
        state: State = json.loads(self._state.read_text(encoding="utf-8"))
        if state.get("schema") != SCHEMA:
            raise TablesError(f"{self.root}: written by another version of kproto; write to a new directory")
        return state

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer; finish what another one left.

        Raises:
            TablesError: there is another writer.
        """
        import fcntl  # Windows has none, and can do all else of this package

        self._own.mkdir(parents=True, exist_ok=True)
        with (self._own / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TablesError(f"{self.root}: another `tables` is writing there") from None
            self._finish()
            yield

    def publish(self, state: State) -> None:
        """Move all Parquet files from `staged` to their places, and note the state."""
        names = sorted(str(path.relative_to(self.staged)) for path in self.staged.rglob("*.parquet"))
        _write(self._intent, {"files": names, "state": {"schema": SCHEMA, **state}})
        self._finish()

    def _finish(self) -> None:
        if self._intent.exists():
            intent = json.loads(self._intent.read_text(encoding="utf-8"))
            for name in intent["files"]:
                self._move(name)
            for folder in {(self.root / name).parent for name in intent["files"]}:
                _sync(folder)
            _write(self._state, intent["state"])
            self._intent.unlink()
            _sync(self._own)
        for folder in (self.staged, self.scratch):
            if folder.exists():
                shutil.rmtree(folder)

    def _move(self, name: str) -> None:
        staged, place = self.staged / name, self.root / name
        if not staged.exists():
            return  # by the writer that left the intent
        place.parent.mkdir(parents=True, exist_ok=True)
        _sync(staged)
        staged.replace(place)


def _write(path: Path, content: State) -> None:
    """Write a file whole or not at all, and make sure of it."""
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
