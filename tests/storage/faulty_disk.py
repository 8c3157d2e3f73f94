"""A disk in memory that forgets what was not synced, tears what was being written, fails, and fills up.

Each file has what is on the disk, and what was done to it since it was synced; each directory likewise has its names.
`after_power_loss` is the disk that is found afterwards: of what was done to a file any part, in pages, and of what was
done to names some beginning, as file systems order that.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable
from random import Random

PAGE_SIZE = 512
"""Smaller than real ones, so that a batch is on several."""

Fault = Callable[[str, str], bool]
"""Told of an operation and a path; whether it fails."""


class Inode:
    """A file, apart from its names."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.on_disk = bytearray(data)
        self.since: list[tuple[int, bytes | None]] = []
        """Writes since the last sync: where, and what; None: cut off there."""

    def write(self, position: int, data: bytes) -> None:
        _put(self.data, position, data)
        self.since.append((position, data))

    def truncate(self, size: int) -> None:
        _cut(self.data, size)
        self.since.append((size, None))

    def sync(self) -> None:
        self.on_disk = bytearray(self.data)
        self.since.clear()

    def after_power_loss(self, random: Random) -> Inode:
        """The file with some of the pages that were written since the last sync."""
        found = bytearray(self.on_disk)
        everything, share = random.random() < 0.3, random.random()
        for position, data in self.since:
            if data is None:
                if everything or random.random() < share:
                    _cut(found, position)
                continue
            for start in range(0, len(data), PAGE_SIZE):
                page = data[start : start + PAGE_SIZE]
                if everything or random.random() < share:
                    torn = len(page) if everything or random.random() < 0.8 else random.randrange(len(page) + 1)
                    _put(found, position + start, page[:torn])
        return Inode(bytes(found))


def _put(octets: bytearray, position: int, data: bytes) -> None:
    if len(octets) < position:
        octets.extend(bytes(position - len(octets)))
    octets[position : position + len(data)] = data


def _cut(octets: bytearray, size: int) -> None:
    if size < len(octets):
        del octets[size:]
    else:
        octets.extend(bytes(size - len(octets)))


class OpenFile:
    def __init__(self, disk: FaultyDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self.size = len(inode.data)

    def write_at(self, position: int, data: bytes) -> None:
        grows = position + len(data) - len(self._inode.data)
        room = self._disk.room
        if grows > room:
            self._inode.write(position, data[: len(data) - (grows - room)])
            raise OSError(errno.ENOSPC, "No space left on device")
        if self._disk.fails("write", self._path):
            self._inode.write(position, data[: len(data) // 2])
            raise OSError(errno.EIO, "Input/output error")
        self._inode.write(position, data)
        self.size = len(self._inode.data)

    def read_at(self, position: int, size: int) -> bytes:
        return bytes(self._inode.data[position : position + size])

    def truncate(self, size: int) -> None:
        self._disk.check("truncate", self._path)
        self._inode.truncate(size)
        self.size = size

    def preallocate(self, size: int) -> None:
        if size - len(self._inode.data) > self._disk.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        if size > len(self._inode.data):
            self.truncate(size)

    def sync(self) -> None:
        self._disk.check("sync", self._path)
        self._inode.sync()

    def close(self) -> None:
        """There is nothing to give back."""


class FaultyDisk:
    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.fault: Fault = lambda operation, path: False
        self.directories = {""}
        self.files: dict[str, Inode] = {}
        self._names_on_disk: dict[str, Inode] = {}
        self._since: list[tuple[str, dict[str, Inode]]] = []
        """After each change of names since the last sync of its directory: the directory, and all names."""

    @property
    def room(self) -> int:
        if self.capacity is None:
            return 1 << 40
        return self.capacity - sum(len(inode.data) for inode in self.files.values())

    def fails(self, operation: str, path: str) -> bool:
        return self.fault(operation, path)

    def check(self, operation: str, path: str) -> None:
        if self.fails(operation, path):
            raise OSError(errno.EIO, "Input/output error")

    def names(self, directory: str) -> list[str]:
        prefix = f"{directory}/" if directory else ""
        paths = itertools.chain(self.files, self.directories - {""})
        inside = {path[len(prefix) :] for path in paths if path.startswith(prefix)}
        return sorted(name for name in inside if "/" not in name)

    def make_directory(self, directory: str) -> None:
        self.directories.add(directory)

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        self.check("open", path)
        if path not in self.files:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            if self.room <= 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.files[path] = Inode()
            self._changed(path)
        return OpenFile(self, path, self.files[path])

    def rename(self, path: str, to: str) -> None:
        self.check("rename", path)
        self.files[to] = self.files.pop(path)
        self._changed(to)

    def remove(self, path: str) -> None:
        self.check("remove", path)
        if path in self.directories:
            assert not self.names(path), f"{path} is not empty"
            self.directories.remove(path)
            return
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        del self.files[path]
        self._changed(path)

    def sync_directory(self, directory: str) -> None:
        self.check("sync directory", directory)
        self._names_on_disk = self._with_names_of(self._names_on_disk, directory, self.files)
        self._since = [(of, names) for of, names in self._since if of != directory]

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.directories

    def size_of(self, path: str) -> int:
        return len(self.files[path].data)

    def _changed(self, path: str) -> None:
        self._since.append((path.rpartition("/")[0], dict(self.files)))

    @staticmethod
    def _with_names_of(base: dict[str, Inode], directory: str, names: dict[str, Inode]) -> dict[str, Inode]:
        elsewhere = {path: inode for path, inode in base.items() if path.rpartition("/")[0] != directory}
        return elsewhere | {path: inode for path, inode in names.items() if path.rpartition("/")[0] == directory}

    def after_power_loss(self, random: Random) -> FaultyDisk:
        """The disk as it is found; directories are there, as making them is not what this is about."""
        names = self._names_on_disk
        for directory, after in self._since[: random.randrange(len(self._since) + 1)]:
            names = self._with_names_of(names, directory, after)
        found = FaultyDisk(self.capacity)
        found.directories = set(self.directories)
        found.files = {path: inode.after_power_loss(random) for path, inode in names.items()}
        found._names_on_disk = dict(found.files)
        return found

    def after_kill(self) -> FaultyDisk:
        """The disk for the next process: everything is there, and what was not synced still is not."""
        self.fault = lambda operation, path: False
        return self
