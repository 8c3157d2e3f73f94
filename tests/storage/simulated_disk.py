"""A disk in memory that may do all that disks may do: the judge of what storage promises.

It forgets what was not synced, tears what was being written, brings changes in another order to where they survive
(`tests.storage.simulated_files` says how), fails operations, fills up, and loses its power in the middle of one.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from typing import Literal, NamedTuple

from tests.storage.simulated_files import Change, Directory, Inode, NameChange, inodes

Kind = Literal["create", "make", "write", "truncate", "preallocate", "sync", "rename", "remove", "sync_directory"]


class Operation(NamedTuple):
    """Something that changes the disk, and may fail."""

    kind: Kind
    path: str


class PowerLost(BaseException):
    """The power fails, here and now; no handler of errors is to take it for one."""


class SimulatedFile:
    """An open file; it stays usable when its name goes, as in Unix."""

    __slots__ = ("_disk", "_inode", "_path", "is_open")

    def __init__(self, disk: SimulatedDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self.is_open = True

    @property
    def size(self) -> int:
        return len(self._inode.content)

    @size.setter
    def size(self, size: int) -> None:
        raise AssertionError(f"the size of {self._path} follows from its content, not {size}")

    def write_at(self, position: int, data: bytes) -> None:
        self._check()
        self._disk.write(self._path, self._inode, position, data)

    def read_at(self, position: int, size: int) -> bytes:
        self._check()
        return bytes(self._inode.content[position : position + size])

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
        self._disk.open_files -= 1

    def _check(self) -> None:
        assert self.is_open, f"{self._path} is closed"


class SimulatedDisk:
    """A data directory on such a disk."""

    def __init__(self, *, seed: int = 0, capacity: int | None = None) -> None:
        """``capacity``: octets that all files together may have; None: any."""
        self.chance = random.Random(seed)  # noqa: S311 - the same each time is what is wanted
        """Decides how much of a write that fails is written."""
        self.capacity = capacity
        self.fails: Callable[[Operation], bool] = lambda operation: False
        """Asked before each operation: whether it fails with EIO. Of a write that does, some may be written."""
        self.operations_left: int | None = None
        """The power fails in the operation after so many; it may have happened, like all that is not synced."""
        self.operation_count = 0
        self.open_files = 0
        self.used = 0
        self._root = Directory({})
        self._is_gone = False

    # What storage asks for: the protocol.

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
        self.open_files += 1
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

    def sync_directory(self, directory: str) -> None:
        found = self._find(directory)
        assert isinstance(found, Directory), f"{directory} is no directory"
        self.sync("sync_directory", directory, found)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def size_of(self, path: str) -> int:
        found = self._find(path)
        if not isinstance(found, Inode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return len(found.content)

    # What may happen to it.

    def crash(self, chance: random.Random) -> SimulatedDisk:
        """The power fails: return the disk as it is when the power is back. ``chance`` decides what it has lost."""
        after = self._successor()
        after._root = self._root.survivor(chance)
        after.used = sum(len(inode.content) for inode in inodes(after._root))
        return after

    def kill(self) -> SimulatedDisk:
        """The process is killed: return the disk as the next one sees it. What was not synced still is not."""
        after = self._successor()
        after._root = self._root
        after.used = self.used
        return after

    def _successor(self) -> SimulatedDisk:
        self._is_gone = True
        after = SimulatedDisk(capacity=self.capacity)
        after.chance = self.chance
        return after

    # What happens.

    def write(self, path: str, inode: Inode, position: int, data: bytes) -> None:
        try:
            power_fails = self._begin("write", path)
        except OSError:
            self._write(inode, position, data[: self.chance.randrange(len(data))] if data else b"")
            raise
        room = len(data)
        if self.capacity is not None and inode.is_linked:
            room = max(0, len(inode.content) - position + max(0, self.capacity - self.used))
        self._write(inode, position, data[:room])
        self._end(power_fails)
        if room < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def _write(self, inode: Inode, position: int, data: bytes) -> None:
        before = len(inode.content)
        if data:
            inode.change(Change(position, data))
        self._count(inode, len(inode.content) - before)

    def resize(self, kind: Kind, path: str, inode: Inode, size: int) -> None:
        power_fails = self._begin(kind, path)
        more = size - len(inode.content)
        if kind == "preallocate" and self.capacity is not None and more > self.capacity - self.used:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        inode.change(Change(size, None))
        self._count(inode, more)
        self._end(power_fails)

    def sync(self, kind: Kind, path: str, node: Inode | Directory) -> None:
        try:
            power_fails = self._begin(kind, path)
        except OSError:
            node.fail_to_sync()
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
            self.used += more

    def _unlink(self, node: Inode | Directory | None) -> None:
        if isinstance(node, Inode):
            self.used -= len(node.content)
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
