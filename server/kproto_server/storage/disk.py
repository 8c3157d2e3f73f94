"""The disk as storage uses it: protocols for files and directories, and their implementation by the operating system.

Storage knows only the protocols, so tests run it on a simulated disk that loses unsynced changes, tears writes, fails
operations and fills up. Paths are relative to the data directory, with ``/`` between names.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from kproto.errors import LogError
from kproto_server.storage.errors import DirectoryInUse

if TYPE_CHECKING:
    from collections.abc import Callable

LOCK_NAME = ".lock"
"""Kafka's lock file, so that a real broker and kproto exclude each other."""
IN_USE = "{} is in use by another broker; stop it, or use another directory"
SYMBOLIC_LINK = "is a symbolic link, and nothing outside the data directory is written"
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
READ_ONLY_ERRORS = (errno.EROFS, errno.EPERM)
"""Of a file that can only be read: its file system is read-only, or it is immutable."""
NO_DESCRIPTOR_ERRORS = (errno.EMFILE, errno.ENFILE)
NO_SPARE = -1
TO_SYNC = os.O_RDWR if sys.platform == "win32" else os.O_RDONLY
"""How a file is opened for a sync alone."""
_LOCKED: set[tuple[int, int]] = set()
"""Lock files locked by this process, by device and inode number."""


class File(Protocol):
    """An open file; the function that has opened it closes it."""

    size: int
    """Bytes."""

    def write_at(self, position: int, data: bytes) -> None:
        """Write all of the data.

        Raises:
            OSError: part of the data may be written; the caller truncates the file.
        """
        ...

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to ``size`` bytes, fewer only at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Set the size of the file."""
        ...

    def preallocate(self, size: int) -> None:
        """Extend the file with zeros to this size, and reserve the space.

        Raises:
            OSError: the disk has not enough space.
        """
        ...

    def sync(self) -> None:
        """Make the content and size durable (fdatasync)."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    """The files of one data directory."""

    def names(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; an empty list if it does not exist."""
        ...

    def make_directory(self, directory: str) -> None:
        """Create a directory, unless it exists."""
        ...

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading and writing; the caller closes it."""
        ...

    def rename(self, path: str, to: str) -> None:
        """Rename a file; replace an existing one of the new name in the same step."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or an empty directory."""
        ...

    def sync_file(self, path: str) -> None:
        """Make the content of a file durable."""
        ...

    def sync_directory(self, directory: str) -> None:
        """Make the names in a directory durable: created, renamed and removed files."""
        ...

    def exists(self, path: str) -> bool: ...

    def is_file(self, path: str) -> bool: ...

    def size_of(self, path: str) -> int: ...

    def lock(self) -> None:
        """Lock the directory against other brokers."""
        ...

    def unlock(self) -> None:
        """Release the lock, if this disk has it."""
        ...


def read_all(disk: Disk, path: str) -> bytes:
    """Return the content of a file."""
    file = disk.open(path)
    try:
        return file.read_at(0, file.size)
    finally:
        file.close()


def replace_file(
    disk: Disk, path: str, data: bytes, *, syncs: bool = True, before_rename: Callable[[], object] | None = None
) -> None:
    """Replace the content of a file; after a crash the file has its old or its new content.

    The new content is durable before the rename, since the name can reach the disk before the content. The sync of the
    directory makes the rename durable. Without ``syncs`` this holds for a crash of the process only.

    ``before_rename``: called when the disk has taken the new content; if it raises, the file has its old content.
    """
    temporary = f"{path}.tmp"
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
        if syncs:
            file.sync()
    finally:
        file.close()
    if before_rename is not None:
        before_rename()
    disk.rename(temporary, path)
    if syncs:
        disk.sync_directory(directory_of(path))


def directory_of(path: str) -> str:
    """Return the directory of a path; an empty string is the data directory itself."""
    return path.rpartition("/")[0]


def require_file(disk: Disk, path: str) -> bool:
    """Return True if a path is that of a file.

    Raises:
        LogError: it is that of a directory.
    """
    if not disk.is_file(path):
        raise LogError(f"{path} is no file; move it out of the data directory")
    return True


def require_directory(disk: Disk, path: str) -> None:
    """Do nothing if a path is that of a directory, or of nothing.

    Raises:
        LogError: it is that of a file.
    """
    if disk.is_file(path):
        raise LogError(f"{path} is no directory; move it out of the data directory")


class RealFile:
    """A file of the operating system. Owns its descriptor, which `close` closes."""

    __slots__ = ("_fd", "size")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.size: int = os.fstat(fd).st_size

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
    """A directory of the operating system.

    While the directory is locked, a spare descriptor is kept for syncs: a sync that fails ends all writes, as it is
    unknown then what is on the disk, and a process without descriptors must not come to that.
    """

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        self._lock: tuple[int, tuple[int, int]] | None = None
        self._spare = NO_SPARE
        self._spare_lock = Lock()
        """Several threads sync."""

    def _path(self, path: str) -> str:
        return str(self._root / path) if path else str(self._root)

    def names(self, directory: str) -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(os.listdir(self._path(directory)))
        return []

    def make_directory(self, directory: str) -> None:
        path = self._path(directory)
        if directory and os.path.islink(path):
            raise OSError(errno.ELOOP, SYMBOLIC_LINK, path)
        os.makedirs(path, exist_ok=True)

    def open(self, path: str, *, create: bool = False) -> RealFile:
        # Not through a symbolic link: nothing outside the directory is ever written.
        flags = os.O_CLOEXEC | NOFOLLOW | (os.O_CREAT if create else 0)
        try:
            return RealFile(os.open(self._path(path), os.O_RDWR | flags, 0o644))
        except OSError as error:
            # The kernel makes a file system with errors read-only: it can still be read, and a write fails.
            if create or error.errno not in READ_ONLY_ERRORS:
                raise
            return RealFile(os.open(self._path(path), os.O_RDONLY | flags))

    def rename(self, path: str, to: str) -> None:
        os.replace(self._path(path), self._path(to))

    def remove(self, path: str) -> None:
        full = self._path(path)
        if os.path.isdir(full):
            os.rmdir(full)
        else:
            os.unlink(full)

    def sync_file(self, path: str) -> None:
        self._sync(self._path(path), TO_SYNC | os.O_CLOEXEC | NOFOLLOW, getattr(os, "fdatasync", os.fsync))

    def sync_directory(self, directory: str) -> None:
        self._sync(self._path(directory), os.O_RDONLY | os.O_CLOEXEC, os.fsync)

    def _sync(self, path: str, flags: int, sync: Callable[[int], object]) -> None:
        try:
            _open_and_sync(path, flags, sync)
        except OSError as error:
            if error.errno not in NO_DESCRIPTOR_ERRORS:
                raise
            with self._spare_lock:
                if self._spare == NO_SPARE:
                    raise
                os.close(self._spare)
                self._spare = NO_SPARE
                try:
                    _open_and_sync(path, flags, sync)
                finally:
                    self._keep_spare()

    def _keep_spare(self) -> None:
        with suppress(OSError):  # something else has taken the descriptor
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def exists(self, path: str) -> bool:
        return os.path.exists(self._path(path))

    def is_file(self, path: str) -> bool:
        return os.path.isfile(self._path(path))

    def size_of(self, path: str) -> int:
        return os.stat(self._path(path)).st_size

    def lock(self) -> None:
        """Lock the directory against other brokers until `unlock` or the end of the process, as Kafka does.

        Raises:
            DirectoryInUse: another broker has locked it: a kproto or a real broker, in this process or another.
            OSError: the directory is not writable.
        """
        path = self._path(LOCK_NAME)
        # POSIX record locks belong to the process: a second broker of this process would get the lock, and closing its
        # file would release the first one's. So this process looks into its own set first, without opening the file.
        if os.path.exists(path) and _identity(os.stat(path)) in _LOCKED:
            raise DirectoryInUse(IN_USE.format(self._root))
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NOFOLLOW, 0o644)
        if not _try_lock(fd):
            os.close(fd)
            raise DirectoryInUse(IN_USE.format(self._root))
        identity = _identity(os.fstat(fd))
        _LOCKED.add(identity)
        self._lock = fd, identity
        self._keep_spare()

    def unlock(self) -> None:
        """Release the lock, if this disk has it."""
        if self._lock is not None:
            fd, identity = self._lock
            self._lock = None
            _LOCKED.discard(identity)
            os.close(fd)
            if self._spare != NO_SPARE:
                os.close(self._spare)
                self._spare = NO_SPARE


def _open_and_sync(path: str, flags: int, sync: Callable[[int], object]) -> None:
    fd = os.open(path, flags)
    try:
        sync(fd)
    finally:
        os.close(fd)


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def _try_lock(fd: int) -> bool:
    """Lock a file without waiting; return whether that succeeded."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows has no such locks
        return True
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
