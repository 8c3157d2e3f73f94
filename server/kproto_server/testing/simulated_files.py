"""Files and directories of the simulated disk: the content that the process reads, the durable content, and the
changes between the two.

Theory of operation. A file or directory keeps its changes since its last sync, in order. After a power loss it has its
durable content and any part of those changes:

- A file has either a prefix of its changes, the last of them torn at any byte, or any subset of their 512-byte blocks,
  since blocks reach a disk in any order. A gap before a block that did reach the disk contains zeros.
- A directory has any subset of its changes, except changes that depend on a lost one for a name.

Files and directories are independent: a name can survive without the content, and the content without a name.

A failed sync of a file leaves the writes that it should have covered unsafe: operating systems can mark such pages
clean, so that no later sync writes them. Names and sizes are metadata, which file systems keep consistent by
themselves, so a later sync of those succeeds.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

BLOCK_SIZE = 512
"""Bytes that reach the disk together."""


class FileChange(NamedTuple):
    """A write, or a new size if ``data`` is None."""

    position: int
    data: bytes | None


class NameChange(NamedTuple):
    """A removed name, an added name, or both in one step."""

    removed: str | None
    added: str | None
    node: Inode | Directory | None


class Content:
    """The bytes of a file. Zeros behind the last write take no memory, as in a sparse file: files are preallocated."""

    __slots__ = ("_data", "size")

    def __init__(self, data: bytes | bytearray = b"") -> None:
        self._data: bytearray = bytearray(data)
        self.size: int = len(data)

    def copy(self) -> Content:
        copied = Content(self._data)
        copied.size = self.size
        return copied

    def read(self, position: int, size: int) -> bytes:
        """Return at most ``size`` bytes: fewer at the end of the file."""
        found = bytes(self._data[position : min(position + size, self.size)])
        return found + bytes(max(0, min(size, self.size - position) - len(found)))

    def apply(self, change: FileChange) -> None:
        position, data = change
        if data is None:
            del self._data[position:]
            self.size = position
            return
        self._data.extend(bytes(max(0, position - len(self._data))))
        self._data[position : position + len(data)] = data
        self.size = max(self.size, position + len(data))


class Inode:
    """A file without its names."""

    __slots__ = ("content", "durable", "is_linked", "pending", "unsafe_count")

    def __init__(self, content: Content | None = None) -> None:
        self.content: Content = content or Content()
        self.durable: Content = self.content.copy()
        self.pending: list[tuple[FileChange, bool]] = []
        """Changes since the last complete sync, and whether each is durable although an earlier one is not."""
        self.unsafe_count: int = 0
        """Number of leading changes that a failed sync covered."""
        self.is_linked: bool = True

    def change(self, change: FileChange) -> None:
        self.content.apply(change)
        self.pending.append((change, False))

    def sync(self) -> None:
        if self.unsafe_count:
            for index, (change, _) in enumerate(self.pending):
                if index >= self.unsafe_count or change.data is None:
                    self.pending[index] = change, True
        else:
            for change, _ in self.pending:
                self.durable.apply(change)
            self.pending.clear()

    def fail_sync(self) -> None:
        self.unsafe_count = len(self.pending)

    def after_power_loss(self, chance: random.Random | None) -> Inode:
        """Return the file after a power loss; None: all changes that are not durable are lost."""
        content = self.durable.copy()
        if self.pending:
            by_blocks = chance is not None and chance.random() < 0.4
            kept_count = 0 if chance is None else chance.randrange(len(self.pending) + 1)
            for index, (change, is_durable) in enumerate(self.pending):
                if is_durable:
                    content.apply(change)
                elif chance is None:
                    continue
                elif by_blocks:
                    _apply_blocks(content, change, chance)
                elif index < kept_count:
                    content.apply(change)
                elif index == kept_count and change.data is not None:
                    content.apply(change._replace(data=change.data[: chance.randrange(len(change.data) + 1)]))
        return Inode(content)


def _apply_blocks(content: Content, change: FileChange, chance: random.Random) -> None:
    position, data = change
    if data is None:
        if chance.random() < 0.5:
            content.apply(change)
        return
    start = position
    end = position + len(data)
    while start < end:
        stop = min(end, (start // BLOCK_SIZE + 1) * BLOCK_SIZE)
        if chance.random() < 0.5:
            content.apply(FileChange(start, data[start - position : stop - position]))
        start = stop


class Directory:
    """A directory and the nodes in it."""

    __slots__ = ("durable", "names", "pending")

    def __init__(self, names: dict[str, Inode | Directory]) -> None:
        self.names: dict[str, Inode | Directory] = names
        self.durable: dict[str, Inode | Directory] = dict(names)
        self.pending: list[NameChange] = []

    def change(self, change: NameChange) -> None:
        _apply_name(self.names, change)
        self.pending.append(change)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.pending.clear()

    def fail_sync(self) -> None:
        """Do nothing: the next sync covers all pending changes."""

    def after_power_loss(self, chance: random.Random | None) -> Directory:
        """Return the directory and its content after a power loss; None: all changes that are not durable are lost."""
        names = dict(self.durable)
        lost: set[str | None] = set()
        for change in self.pending:
            touched = {change.removed, change.added} - {None}
            if chance is None or touched & lost or chance.random() < 0.5:
                lost |= touched
            else:
                _apply_name(names, change)
        return Directory({name: node.after_power_loss(chance) for name, node in names.items()})


def _apply_name(names: dict[str, Inode | Directory], change: NameChange) -> None:
    if change.removed is not None:
        names.pop(change.removed, None)
    if change.added is not None and change.node is not None:
        names[change.added] = change.node


def inodes(directory: Directory) -> Iterable[Inode]:
    """Yield all files below a directory."""
    for node in directory.names.values():
        if isinstance(node, Directory):
            yield from inodes(node)
        else:
            yield node
