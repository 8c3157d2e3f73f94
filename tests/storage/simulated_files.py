"""Files and directories of the simulated disk: what the process sees, what is durable, and what stands between.

Theory of operation. Changes that no sync has covered are kept in their order. What a crash leaves is what is durable,
and of those changes any part:

- of a file either the first ones, the last of them torn at any octet, or any of them by blocks of 512 octets: blocks
  reach a disk in any order. Where the file has become longer around a block that did not get there, it has zeros.
- of a directory any of them, but for those that need a name from one that did not happen.

Files and directories know nothing of each other: a name may be there without the content, and the other way round.
A sync of a file that fails leaves the writes that it should have covered in doubt, and no later sync covers them, as
those who have relied on a second try have found. (Names and sizes are what file systems have journals for: where one of
those fails, nothing can be written any more.)
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

BLOCK_SIZE = 512


class Change(NamedTuple):
    """Of a file: octets written, or its size (``data`` is None)."""

    position: int
    data: bytes | None


class NameChange(NamedTuple):
    """Of a directory: a name goes, a name comes, or both in one step."""

    gone: str | None
    come: str | None
    node: Inode | Directory | None


def _apply(content: bytearray, change: Change) -> None:
    position, data = change
    if data is None:
        del content[position:]
    content.extend(bytes(max(0, position - len(content))))
    if data is not None:
        content[position : position + len(data)] = data


class Inode:
    __slots__ = ("content", "durable", "in_doubt", "is_linked", "pending")

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.durable = content
        self.pending: list[tuple[Change, bool]] = []
        """Changes that are not durable, in their order; True: they are, but one before them is in doubt."""
        self.in_doubt = 0
        """How many of the first ones a failed sync has left in doubt."""
        self.is_linked = True

    def change(self, change: Change) -> None:
        _apply(self.content, change)
        self.pending.append((change, False))

    def sync(self) -> None:
        if self.in_doubt:
            for number, (change, _) in enumerate(self.pending):
                if number >= self.in_doubt or change.data is None:
                    self.pending[number] = change, True
        else:
            self.durable = bytes(self.content)
            self.pending.clear()

    def fail_to_sync(self) -> None:
        self.in_doubt = len(self.pending)

    def survivor(self, chance: random.Random) -> Inode:
        """Return what the file is after a crash."""
        content = bytearray(self.durable)
        if self.pending:
            by_blocks = chance.random() < 0.4
            left = chance.randrange(len(self.pending) + 1)
            for number, (change, is_sure) in enumerate(self.pending):
                if is_sure:
                    _apply(content, change)
                elif by_blocks:
                    _apply_blocks(content, change, chance)
                elif number < left:
                    _apply(content, change)
                elif number == left and change.data is not None:
                    _apply(content, change._replace(data=change.data[: chance.randrange(len(change.data) + 1)]))
        return Inode(bytes(content))


def _apply_blocks(content: bytearray, change: Change, chance: random.Random) -> None:
    position, data = change
    if data is None:
        if chance.random() < 0.5:
            _apply(content, change)
        return
    start = position
    end = position + len(data)
    while start < end:
        stop = min(end, (start // BLOCK_SIZE + 1) * BLOCK_SIZE)
        if chance.random() < 0.5:
            _apply(content, Change(start, data[start - position : stop - position]))
        start = stop


class Directory:
    __slots__ = ("durable", "names", "pending")

    def __init__(self, names: dict[str, Inode | Directory]) -> None:
        self.names = names
        self.durable = dict(names)
        self.pending: list[NameChange] = []

    def change(self, change: NameChange) -> None:
        _apply_name(self.names, change)
        self.pending.append(change)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.pending.clear()

    def fail_to_sync(self) -> None:
        """Leave everything to the next sync."""

    def survivor(self, chance: random.Random) -> Directory:
        """Return the directory after a crash, and all that is in it."""
        names = dict(self.durable)
        lost: set[str | None] = set()
        for change in self.pending:
            touched = {change.gone, change.come} - {None}
            if touched & lost or chance.random() < 0.5:
                lost |= touched
            else:
                _apply_name(names, change)
        return Directory({name: node.survivor(chance) for name, node in names.items()})


def _apply_name(names: dict[str, Inode | Directory], change: NameChange) -> None:
    if change.gone is not None:
        names.pop(change.gone, None)
    if change.come is not None and change.node is not None:
        names[change.come] = change.node


def inodes(directory: Directory) -> Iterable[Inode]:
    """Yield all files below a directory."""
    for node in directory.names.values():
        if isinstance(node, Directory):
            yield from inodes(node)
        else:
            yield node
