"""A disk as the log sees it: files and directories, what reaches them, and what may go wrong.

Everything above works over these protocols, so that tests can put a disk below that forgets what was not synced, tears
what was being written, and fills up. Paths are relative to the data directory, with "/" between names.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from kproto_server.storage.errors import DirectoryInUse

LOCK_NAME = ".lock"
IN_USE = "{} is in use by another broker; stop it, or use another directory"
_LOCKED: set[tuple[int, int]] = set()
"""Lock files that this process has locked, by device and number."""


class File(Protocol):
    """An open file."""

    size: int
    """Bytes, as this process knows it."""

    def write_at(self, position: int, data: bytes) -> None:
        """Write all of the data.

        Raises:
            OSError: some of it may have been written; the caller truncates.
        """
        ...

    def read_at(self, position: int, size: int) -> bytes:
        """Read so many bytes, or those that there are."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file off."""
        ...

    def preallocate(self, size: int) -> None:
        """Make the file this large, with zeros, and reserve the space.

        Raises:
            OSError: there is not so much.
        """
        ...

    def sync(self) -> None:
        """Have what was written survive power loss (fdatasync)."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    """The files of one data directory."""

    def names(self, directory: str) -> list[str]:
        """Return what is in a directory, in order; nothing if there is no such directory."""
        ...

    def make_directory(self, directory: str) -> None:
        """Make a directory, unless it exists."""
        ...

    def open(self, path: str, *, create: bool = False) -> File: ...

    def rename(self, path: str, to: str) -> None:
        """Give a file another name; one that had it is replaced."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or an empty directory."""
        ...

    def sync_directory(self, directory: str) -> None:
        """Have the names in a directory survive power loss."""
        ...

    def exists(self, path: str) -> bool: ...

    def size_of(self, path: str) -> int: ...


def read_all(disk: Disk, path: str) -> bytes:
    """Return a file's content."""
    file = disk.open(path)
    try:
        return file.read_at(0, file.size)
    finally:
        file.close()


def replace_file(disk: Disk, path: str, data: bytes) -> None:
    """Give a file new content, all of it or none: write beside, sync, rename, sync the directory."""
    extra_logs = f"{path}.tmp"
    file = disk.open(extra_logs, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
        file.sync()
    finally:
        file.close()
    disk.rename(extra_logs, path)
    disk.sync_directory(directory_of(path))


def directory_of(path: str) -> str:
    """Return the directory of a path; "" is the data directory itself."""
    return path.rpartition("/")[0]


class RealFile:
    """A file of the operating system."""

    __slots__ = ("_fd", "size")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.size = os.fstat(fd).st_size

    def write_at(self, position: int, data: bytes) -> None:
        end = position + len(data)
        position += os.pwrite(self._fd, data, position)
        while position < end:
            position += os.pwrite(self._fd, data[position - end :], position)
        if end > self.size:
            self.size = end

    def read_at(self, position: int, size: int) -> bytes:
        return os.pread(self._fd, size, position)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        self.size = size

    def preallocate(self, size: int) -> None:
        if size > self.size:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._fd, 0, size)
            else:  # pragma: no cover - macOS
                os.ftruncate(self._fd, size)
            self.size = size

    def sync(self) -> None:
        getattr(os, "fdatasync", os.fsync)(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class RealDisk:
    """A directory of the operating system."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        self._lock: tuple[int, tuple[int, int]] | None = None

    def _path(self, path: str) -> str:
        return str(self._root / path) if path else str(self._root)

    def names(self, directory: str) -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(os.listdir(self._path(directory)))
        return []

    def make_directory(self, directory: str) -> None:
        os.makedirs(self._path(directory), exist_ok=True)

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(os.open(self._path(path), flags, 0o644))

    def rename(self, path: str, to: str) -> None:
        os.replace(self._path(path), self._path(to))

    def remove(self, path: str) -> None:
        full = self._path(path)
        if os.path.isdir(full):
            os.rmdir(full)
        else:
            os.unlink(full)

    def sync_directory(self, directory: str) -> None:
        fd = os.open(self._path(directory), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def exists(self, path: str) -> bool:
        return os.path.exists(self._path(path))

    def size_of(self, path: str) -> int:
        return os.stat(self._path(path)).st_size

    def lock(self) -> None:
        """Keep others out, as Kafka does, for as long as this process lives or until `unlock`.

        Raises:
            DirectoryInUse: somebody is in: another process, ours or a real broker's, or another broker in this one.
            OSError: the directory can't be written.
        """
        path = self._path(LOCK_NAME)
        # The operating system's lock keeps out other processes only, and is gone if this one closes the file once.
        if os.path.exists(path) and _identity(os.stat(path)) in _LOCKED:
            raise DirectoryInUse(IN_USE.format(self._root))
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if not _locked(fd):
            os.close(fd)
            raise DirectoryInUse(IN_USE.format(self._root))
        identity = _identity(os.fstat(fd))
        _LOCKED.add(identity)
        self._lock = fd, identity

    def unlock(self) -> None:
        """Let others in."""
        if self._lock is not None:
            fd, identity = self._lock
            self._lock = None
            _LOCKED.discard(identity)
            os.close(fd)


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def _locked(fd: int) -> bool:
    """Lock a file; return whether that was possible."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows has no such locks
        return True
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
