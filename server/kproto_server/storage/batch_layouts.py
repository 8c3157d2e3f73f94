"""Batches that have the same keys, told by their octets: those of a consumer that commits the same partitions again.

Theory of operation. Such batches are alike in everything but their values. So of each layout, what stands outside the
values is kept as one big number, and a batch is of that layout if it gives the same number once its values are masked
out; a comparison at the speed of memory, where going from record to record takes a microsecond for each. A batch that
gives the number has its sizes in the same places, for these are not masked out: so its keys are the layout's.
"""

from __future__ import annotations

LAYOUTS_SIZE_MAX = 40 << 20
"""Octets of all layouts, about; beyond that no more are remembered: batches of others are gone through by record."""
COST = 3
"""Octets kept for each of a batch's records: the number, the keys, and what Python has around them."""


class Layout:
    """Batches with the same keys, in the same places."""

    __slots__ = ("keys", "newest")

    def __init__(self, keys: tuple[tuple[bytes, int], ...]) -> None:
        self.keys = keys
        """Each record's key and offset, from the batch's base offset."""
        self.newest = -1
        """The base offset of the newest such batch that was noted."""


class Layouts:
    """Those met so far; per size and record count there is one mask, the newest."""

    def __init__(self) -> None:
        self._by_size: dict[tuple[int, int], tuple[int, dict[int, Layout]]] = {}
        self.all: list[Layout] = []
        self._size = 0

    def find(self, records: bytes, count: int) -> Layout | None:
        """Return the layout of a batch by its records; None: it is not known."""
        found = self._by_size.get((len(records), count))
        return None if found is None else found[1].get(int.from_bytes(records, "big") & found[0])

    def add(self, records: bytes, keys: tuple[tuple[bytes, int], ...], values: list[tuple[int, int]]) -> Layout | None:
        """Remember a layout by one batch: its keys, and from where to where its values go; None: there is no room."""
        self._size += COST * len(records)
        if self._size > LAYOUTS_SIZE_MAX:
            return None
        octets = bytearray(b"\xff" * len(records))
        for start, end in values:
            octets[start:end] = bytes(end - start)
        mask = int.from_bytes(octets, "big")
        size = (len(records), len(keys))
        found = self._by_size.get(size)
        if found is None or found[0] != mask:
            found = self._by_size[size] = (mask, {})
        layout = found[1][int.from_bytes(records, "big") & mask] = Layout(keys)
        self.all.append(layout)
        return layout
