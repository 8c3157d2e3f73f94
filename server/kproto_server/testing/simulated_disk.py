"""A disk in memory with all failures of real disks, for tests of what storage guarantees.

It loses unsynced changes, tears writes, reorders changes (`kproto_server.testing.simulated_files` describes how), fails
operations with EIO, fills up, and loses power in the middle of an operation.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from typing import Literal, NamedTuple

from kproto_server.testing.simulated_files import Directory, FileChange, Inode, NameChange, inodes

Kind = Literal["create", "make", "write", "truncate", "preallocate", "sync", "rename", "remove", "sync_directory"]


class Operation(NamedTuple):
    """An operation that changes the disk."""

    kind: Kind
    path: str


class PowerLost(BaseException):
    """The power failed in this operation. A BaseException, so that no handler of OSError or Exception catches it."""


class SimulatedFile:
    """An open file; it stays usable after its name is removed, as on Unix."""

    __slots__ = ("_disk", "_inode", "_path", "is_open")

    def __init__(self, disk: SimulatedDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self.is_open: bool = True

    @property
    def size(self) -> int:
        return self._inode.content.size

    @size.setter
    def size(self, size: int) -> None:
        raise AssertionError(f"{self._path}: the size {size} is set from outside")

    def write_at(self, position: int, data: bytes) -> None:
        self._check()
        self._disk.write(self._path, self._inode, position, data)

    def read_at(self, position: int, size: int) -> bytes:
        self._check()
        return self._inode.content.read(position, size)

    def truncate(self, size: int) -> None:
        self._check()
        self._disk.resize("truncate", self._path, self._inode, size)

    def preallocate(self, size: int) -> None:
        self._check()
        if size > self.size:
            self._disk.resize("preallocate", self._path, self._inode, size)

    def sync(self) -> None:
        self._check()
        self._disk.sync("sync", self._path, self._inode)

    def close(self) -> None:
        assert self.is_open, f"{self._path} is closed twice"
        self.is_open = False
        self._disk.open_file_count -= 1

    def _check(self) -> None:
        assert self.is_open, f"{self._path} is closed"


class SimulatedDisk:
    """A data directory in memory: the `Disk` protocol, and the failures that tests inject.

    A disk is used until `crash` or `kill`, which return its successor; any later use of it raises `PowerLost`.
    """

    def __init__(self, *, seed: int = 0, capacity_bytes: int | None = None) -> None:
        """Make an empty disk; ``capacity_bytes`` limits the bytes of all files together."""
        self.chance: random.Random = random.Random(seed)  # noqa: S311 - reproducible
        """Decides how much of a failed write is written."""
        self.capacity_bytes = capacity_bytes
        self.fails: Callable[[Operation], bool] = lambda operation: False
        """Called before each operation; returns whether it fails with EIO. A failed write writes a random prefix."""
        self.operations_left: int | None = None
        """Number of operations before the power fails. The operation in which it fails is done, but not synced."""
        self.operation_count: int = 0
        self.open_file_count: int = 0
        self.used_bytes: int = 0
        self._root = Directory({})
        self._is_gone = False

    # The `Disk` protocol.

    def names(self, directory: str) -> list[str]:
        found = self._find(directory)
        return sorted(found.names) if isinstance(found, Directory) else []

    def make_directory(self, directory: str) -> None:
        if self._find(directory) is None:
            power_fails = self._begin("make", directory)
            parent, name = self._parent(directory)
            parent.change(NameChange(None, name, Directory({})))
            self._end(power_fails)

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        found = self._find(path)
        if found is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            power_fails = self._begin("create", path)
            parent, name = self._parent(path)
            found = Inode()
            parent.change(NameChange(None, name, found))
            self._end(power_fails)
        assert isinstance(found, Inode), f"{path} is a directory"
        self.open_file_count += 1
        return SimulatedFile(self, path, found)

    def rename(self, path: str, to: str) -> None:
        found = self._find(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        power_fails = self._begin("rename", path)
        parent, name = self._parent(path)
        new_parent, new_name = self._parent(to)
        assert parent is new_parent, "a rename from a directory to another is not simulated"
        self._unlink(parent.names.get(new_name))
        parent.change(NameChange(name, new_name, found))
        self._end(power_fails)

    def remove(self, path: str) -> None:
        found = self._find(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if isinstance(found, Directory) and found.names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        power_fails = self._begin("remove", path)
        parent, name = self._parent(path)
        self._unlink(found)
        parent.change(NameChange(name, None, None))
        self._end(power_fails)

    def sync_file(self, path: str) -> None:
        file = self.open(path)
        try:
            file.sync()
        finally:
            file.close()

    def sync_directory(self, directory: str) -> None:
        found = self._find(directory)
        assert isinstance(found, Directory), f"{directory} is not a directory"
        self.sync("sync_directory", directory, found)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_file(self, path: str) -> bool:
        return isinstance(self._find(path), Inode)

    def size_of(self, path: str) -> int:
        found = self._find(path)
        if not isinstance(found, Inode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found.content.size

    def lock(self) -> None:
        """Do nothing: no other process can use this disk."""

    def unlock(self) -> None:
        """Do nothing."""

    # Failures of the machine and of the process.

    def crash(self, chance: random.Random | None) -> SimulatedDisk:
        """Return the disk after a power loss; ``chance`` decides which unsynced changes are lost, None: all of them."""
        after = self._successor()
        after._root = self._root.after_power_loss(chance)
        after.used_bytes = sum(inode.content.size for inode in inodes(after._root))
        return after

    def kill(self) -> SimulatedDisk:
        """Return the disk for the next process after SIGKILL: unsynced changes are there, still unsynced."""
        after = self._successor()
        after._root = self._root
        after.used_bytes = self.used_bytes
        return after

    def _successor(self) -> SimulatedDisk:
        self._is_gone = True
        after = SimulatedDisk(capacity_bytes=self.capacity_bytes)
        after.chance = self.chance
        return after

    # Effects of the operations.

    def write(self, path: str, inode: Inode, position: int, data: bytes) -> None:
        try:
            power_fails = self._begin("write", path)
        except OSError:
            self._write(inode, position, data[: self.chance.randrange(len(data))] if data else b"")
            raise
        room = len(data)
        if self.capacity_bytes is not None and inode.is_linked:
            room = max(0, inode.content.size - position + max(0, self.capacity_bytes - self.used_bytes))
        self._write(inode, position, data[:room])
        self._end(power_fails)
        if room < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def _write(self, inode: Inode, position: int, data: bytes) -> None:
        before = inode.content.size
        if data:
            inode.change(FileChange(position, data))
        self._count(inode, inode.content.size - before)

    def resize(self, kind: Kind, path: str, inode: Inode, size: int) -> None:
        power_fails = self._begin(kind, path)
        more = size - inode.content.size
        if kind == "preallocate" and self.capacity_bytes is not None and more > self.capacity_bytes - self.used_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        inode.change(FileChange(size, None))
        self._count(inode, more)
        self._end(power_fails)

    def sync(self, kind: Kind, path: str, node: Inode | Directory) -> None:
        try:
            power_fails = self._begin(kind, path)
        except OSError:
            node.fail_sync()
            raise
        self._end(power_fails)
        node.sync()

    def _begin(self, kind: Kind, path: str) -> bool:
        """Return whether the power fails in this operation."""
        if self._is_gone:
            raise PowerLost
        self.operation_count += 1
        if self.operations_left is not None:
            self.operations_left -= 1
            if self.operations_left < 0:
                return True
        if self.fails(Operation(kind, path)):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return False

    def _end(self, power_fails: bool) -> None:
        if power_fails:
            self._is_gone = True
            raise PowerLost

    def _count(self, inode: Inode, more: int) -> None:
        if inode.is_linked:
            self.used_bytes += more

    def _unlink(self, node: Inode | Directory | None) -> None:
        if isinstance(node, Inode):
            self.used_bytes -= node.content.size
            node.is_linked = False

    def _find(self, path: str) -> Inode | Directory | None:
        if self._is_gone:
            raise PowerLost
        node: Inode | Directory | None = self._root
        for name in path.split("/") if path else ():
            if not isinstance(node, Directory):
                return None
            node = node.names.get(name)
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        directory, _, name = path.rpartition("/")
        parent = self._find(directory)
        if not isinstance(parent, Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return parent, name
