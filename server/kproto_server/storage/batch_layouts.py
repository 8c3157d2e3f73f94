"""Batches that have the same keys, told by their octets: those of a consumer that commits the same partitions again.

Theory of operation. Such batches are alike in everything but their values. So of each layout, what stands between the
values is kept, and a batch is of that layout if it has the same there: one unpacking, where going from record to record
takes a microsecond for each. A batch that has the same has its sizes in the same places, for these are no values: so
its keys are the layout's.
"""

from __future__ import annotations

from struct import Struct

LAYOUTS_SIZE_MAX = 40 << 20
"""Octets of all layouts, about; beyond that no more are remembered: batches of others are gone through by record."""
COST = 4
"""Octets kept for each of a batch's records: what stands between values, the keys, and what Python has around them."""


class Layout:
    """Batches with the same keys, in the same places."""

    __slots__ = ("keys", "newest")

    def __init__(self, keys: tuple[tuple[bytes, int], ...]) -> None:
        self.keys = keys
        """Each record's key and offset, from the batch's base offset."""
        self.newest = -1
        """The base offset of the newest such batch that was noted."""


class Layouts:
    """Those met so far; per size and record count values are looked for in one way, the newest."""

    def __init__(self) -> None:
        self._by_size: dict[tuple[int, int], tuple[Struct, dict[tuple[bytes, ...], Layout]]] = {}
        self.all: list[Layout] = []
        self._size = 0

    def find(self, records: bytes, count: int) -> Layout | None:
        """Return the layout of a batch by its records; None: it is not known."""
        found = self._by_size.get((len(records), count))
        return None if found is None else found[1].get(found[0].unpack(records))

    def add(self, records: bytes, keys: tuple[tuple[bytes, int], ...], values: list[tuple[int, int]]) -> Layout | None:
        """Remember a layout by one batch: its keys, and from where to where its values go; None: there is no room."""
        self._size += COST * len(records)
        if self._size > LAYOUTS_SIZE_MAX:
            return None
        between = _between(values, len(records))
        size = (len(records), len(keys))
        found = self._by_size.get(size)
        if found is None or found[0].format != between.format:
            found = self._by_size[size] = (between, {})
        layout = found[1][between.unpack(records)] = Layout(keys)
        self.all.append(layout)
        return layout


def _between(values: list[tuple[int, int]], size: int) -> Struct:
    """Return what takes all out of a batch's records but the values."""
    parts = []
    position = 0
    for start, end in values:
        parts.append(f"{start - position}s{end - start}x")
        position = end
    return Struct(f"={''.join(parts)}{size - position}s")
