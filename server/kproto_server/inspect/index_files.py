"""Read the index files of a segment in slices (LF-51)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from kproto.errors import CorruptLog
from kproto.logs.locations import open_file
from kproto.records.segment_files import IndexEntry, TimeIndexEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.logs.locations import Location

E = TypeVar("E", IndexEntry, TimeIndexEntry)

ENTRIES_AT_ONCE = 8192


class IndexEntries(Generic[E]):
    """The entries of an index file, one at a time. The newest segment's index may end in zeros: it is preallocated.

    Raises:
        CorruptLog: the first entry, or with `advance` the next one, is invalid.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Location, decode: Callable[[bytes], E], size: int, *, is_newest: bool) -> None:
        self._path = path
        self._label = f"{path.parent.name}/{path.name}"
        self._size = size
        self._entries: Iterator[E] = self._read(decode, is_newest)
        self._number = 0
        self.next: E | None = next(self._entries, None)
        """The next entry; None after the last one."""

    def advance(self) -> None:
        """Go to the next entry, which has to be above this one."""
        before, self.next = self.next, next(self._entries, None)
        self._number += 1
        if before is not None and self.next is not None and any(a <= b for a, b in zip(self.next, before, strict=True)):
            raise self._damage(self._number * self._size, f"{self.next} does not rise above {before}")

    def damage(self, reason: str) -> CorruptLog:
        """Return an error for the next entry."""
        return self._damage(self._number * self._size, f"{self.next}: {reason}")

    def damage_before(self, reason: str) -> CorruptLog:
        """Return an error for the entry before the next one."""
        return self._damage((self._number - 1) * self._size, reason)

    def _damage(self, position: int, reason: str) -> CorruptLog:
        return CorruptLog(self._label, position, None, reason)

    def _read(self, decode: Callable[[bytes], E], is_newest: bool) -> Iterator[E]:
        size, length = self._size, self._path.stat().st_size
        if length % size:
            raise self._damage(length - length % size, f"{length % size} bytes of an entry of {size}")
        zeros_from: int | None = None
        position = 0
        with open_file(self._path) as file:
            while data := file.read(size * ENTRIES_AT_ONCE):
                for start in range(0, len(data), size):
                    entry = data[start : start + size]
                    if any(entry) and zeros_from is None:
                        yield decode(entry)
                    elif any(entry):
                        raise self._damage(zeros_from or 0, f"zeros before the entry at byte {position + start}")
                    elif zeros_from is None:
                        zeros_from = position + start
                position += len(data)
        if zeros_from is not None and not is_newest:
            raise self._damage(zeros_from, "zeros at the end, and this is not the newest segment")
