"""A temporary directory for the rows of a command, which a later command removes if this one is killed.

Theory of operation. A process holds a lock on its directory, which ends with the process, however that ends. The number
of the process would not do: it may be that of another process by now, or of one in another container. Each command
removes the directories that no process has locked. It may find a new one before its process has locked it, so a process
that has the lock looks whether the directory is still there, and otherwise makes another one.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir, mkdtemp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "kproto-rows-"
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""The errors of a file system without locks, on which a killed command leaves its directory."""


@contextmanager
def directory_for_rows(parent: str | None = None) -> Iterator[Path]:
    """Yield a new directory, by default in the system's temporary directory; it is removed at the end.

    Raises:
        OSError: it cannot be made.
    """
    if sys.platform == "win32":  # directories cannot be locked
        with TemporaryDirectory(prefix=PREFIX, dir=parent) as name:
            yield Path(name)
        return
    root = Path(gettempdir() if parent is None else parent)
    _remove_dead(root)
    directory, lock = _make(root)
    try:
        yield directory
    finally:
        # A task that Spark has not ended yet may write at the same time: a later command removes what stays.
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _remove_dead(root: Path) -> None:
    """Remove the directories of this user's processes that have died."""
    for directory in root.glob(f"{PREFIX}*"):
        try:
            if directory.lstat().st_uid != os.getuid():
                continue
            lock = _lock(directory)
        except OSError:  # it is in use, or gone, or no directory
            continue
        shutil.rmtree(directory, ignore_errors=True)  # as far as it can be removed: nothing depends on it
        os.close(lock)


def _make(root: Path) -> tuple[Path, int]:
    """Return a new directory and a descriptor that has its lock."""
    while True:
        directory = Path(mkdtemp(prefix=PREFIX, dir=root))
        try:
            lock = _lock(directory)
        except (FileNotFoundError, BlockingIOError):  # another command has found it first
            continue
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            return directory, os.open(directory, os.O_RDONLY)
        if directory.exists():
            return directory, lock
        os.close(lock)


def _lock(directory: Path) -> int:
    """Return a descriptor that has the lock of a directory.

    Raises:
        BlockingIOError: another process has it.
        OSError: it is no directory, or cannot be locked.
    """
    import fcntl

    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
