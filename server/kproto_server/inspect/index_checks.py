"""Whether the entries of a segment's indexes point at its batches; pure.

Theory of operation. Entries and batches both rise, so both are walked side by side: each batch is told to the check,
which takes as many entries as belong to it. Brokers have put the offset of a batch's first record into the index, of
its last one, and of the last one of an append of several batches; all that a search needs holds for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from kproto.errors import KprotoError
from kproto.records.segment_files import IndexEntry, TimeIndexEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.inspect.checks import Extent

E = TypeVar("E", IndexEntry, TimeIndexEntry)


class BrokenEntry(KprotoError):
    """An entry is wrong; ``number`` counts from 0."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number
        self.reason = reason


class _Entries(Generic[E]):
    """The next entry, and its number."""

    def __init__(self, entries: Iterator[E]) -> None:
        self._entries: Iterator[E] = entries
        self.number = 0
        self.next: E | None = next(entries, None)

    def advance(self) -> None:
        """Go on.

        Raises:
            BrokenEntry: the next entry is not above this one.
        """
        before, self.next = self.next, next(self._entries, None)
        self.number += 1
        if before is not None and self.next is not None and any(a <= b for a, b in zip(self.next, before, strict=True)):
            raise BrokenEntry(self.number, f"{self.next} does not rise above {before}")

    def broken(self, reason: str) -> BrokenEntry:
        return BrokenEntry(self.number, f"{self.next}: {reason}")


class IndexCheck:
    """Checks an ``.index``: each position is that of a batch, and a search that begins there finds the offset."""

    def __init__(self, base_offset: int, entries: Iterator[IndexEntry]) -> None:
        self._base_offset = base_offset
        self._entries: _Entries[IndexEntry] = _Entries(entries)
        self._last_offset = base_offset - 1
        self._highest = base_offset - 1

    def batch(self, extent: Extent) -> None:
        """Take the entries that point at this batch.

        Raises:
            BrokenEntry: one points into it, or has an offset that stands before it.
        """
        while (entry := self._entries.next) is not None and entry.position < extent.end:
            offset = self._base_offset + entry.relative_offset
            if entry.position != extent.position:
                raise self._entries.broken(f"no batch begins there, one does at {extent.position}")
            if offset < extent.base_offset or offset <= self._last_offset:
                raise self._entries.broken(f"the batch there begins with offset {extent.base_offset}, not {offset}")
            self._highest = offset
            self._entries.advance()
        self._last_offset = extent.last_offset

    def end(self, torn: bool) -> None:
        """Nothing may be left; where the tail is torn, a broker makes the index again (LF-60).

        Raises:
            BrokenEntry: an entry points behind the last batch.
        """
        if torn:
            return
        if self._entries.next is not None:
            raise self._entries.broken("behind the last batch")
        if self._highest > self._last_offset:
            raise BrokenEntry(self._entries.number - 1, f"offset {self._highest} is behind the last batch")


class TimeIndexCheck:
    """Checks a ``.timeindex``: each offset is within a batch, and the timestamp is that batch's greatest."""

    def __init__(self, base_offset: int, entries: Iterator[TimeIndexEntry]) -> None:
        self._base_offset = base_offset
        self._entries: _Entries[TimeIndexEntry] = _Entries(entries)

    def batch(self, extent: Extent) -> None:
        """Take the entries that point at this batch.

        Raises:
            BrokenEntry: one points before it, or has another timestamp.
        """
        while (entry := self._entries.next) is not None:
            offset = self._base_offset + entry.relative_offset
            if offset > extent.last_offset:
                return
            if offset < extent.base_offset:
                raise self._entries.broken(f"no batch has offset {offset}")
            if entry.timestamp != extent.max_timestamp:
                raise self._entries.broken(f"the batch of offset {offset} has timestamp {extent.max_timestamp}")
            self._entries.advance()

    def end(self, torn: bool) -> None:
        """Nothing may be left; where the tail is torn, a broker makes the index again (LF-60).

        Raises:
            BrokenEntry: an entry points behind the last batch.
        """
        if self._entries.next is not None and not torn:
            raise self._entries.broken("behind the last batch")
