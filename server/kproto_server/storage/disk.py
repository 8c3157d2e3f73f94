"""A disk as the log sees it: files and directories, what reaches them, and what may go wrong.

Everything above works over these protocols, so that tests can put a disk below that forgets what was not synced, tears
what was being written, and fills up. Paths are relative to the data directory, with "/" between names.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

LOCK_NAME = ".lock"


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
        """Return what is in a directory; nothing if it does not exist."""
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
    beside = f"{path}.tmp"
    file = disk.open(beside, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
        file.sync()
    finally:
        file.close()
    disk.rename(beside, path)
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
        written = os.pwrite(self._fd, data, position)
        while written < len(data):
            written += os.pwrite(self._fd, data[written:], position + written)
        self.size = max(self.size, position + len(data))

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
        self._lock = -1

    def _path(self, path: str) -> str:
        return str(self._root / path) if path else str(self._root)

    def names(self, directory: str) -> list[str]:
        with suppress(FileNotFoundError):
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
        """Keep other processes out, as Kafka does, for as long as this one lives or until `unlock`.

        Raises:
            DirectoryInUse: another one is in.
            OSError: the directory can't be written.
        """
        from kproto_server.storage.errors import DirectoryInUse

        self._lock = os.open(self._path(LOCK_NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            import fcntl
        except ImportError:  # pragma: no cover - Windows has no such locks
            return
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise DirectoryInUse(
                f"{self._root} is in use by another broker; stop it, or use another directory"
            ) from None

    def unlock(self) -> None:
        """Let others in."""
        os.close(self._lock)
