"""Reading a segment's index files in slices; the newest segment's are preallocated, with zeros at the end (LF-51)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kproto.errors import CorruptLog
from kproto.records.segment_files import IndexEntry, TimeIndexEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

E = TypeVar("E", IndexEntry, TimeIndexEntry)

ENTRIES_AT_ONCE = 8192


def entries(path: Path, decode: Callable[[bytes], E], size: int, *, is_last: bool) -> Iterator[E]:
    """Yield the entries of an index file.

    Raises:
        CorruptLog: while iterating: its length is no multiple of an entry's, or it has zeros where none may be.
        OSError: while iterating: it can't be read.
    """
    label = f"{path.parent.name}/{path.name}"
    length = path.stat().st_size
    if length % size:
        raise CorruptLog(label, length - length % size, None, f"{length % size} bytes of an entry of {size}")
    zeros_from: int | None = None
    position = 0
    with open(path, "rb") as file:
        while data := file.read(size * ENTRIES_AT_ONCE):
            for start in range(0, len(data), size):
                octets = data[start : start + size]
                if any(octets) and zeros_from is None:
                    yield decode(octets)
                elif any(octets):
                    raise CorruptLog(label, zeros_from or 0, None, f"zeros, and an entry at byte {position + start}")
                elif zeros_from is None:
                    zeros_from = position + start
            position += len(data)
    if zeros_from is not None and not is_last:
        raise CorruptLog(label, zeros_from, None, "zeros at the end, and this is not the newest segment")
