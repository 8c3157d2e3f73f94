"""The transactions of one partition: which are open, which were aborted, and the markers that end them (KIP-98).

Theory of operation. A transaction begins in a partition with its first batch that has the transactional attribute, and
ends with a marker: a control batch of the broker that says COMMIT or ABORT. The *last stable offset* is the first
offset of the oldest open transaction; without one it is the high watermark. Consumers that read committed records read
up to the last stable offset, and receive the aborted transactions among the records, which they skip themselves.

`TransactionIndex` follows the batches in the order of the log, so it is the same after a restart: as the other indexes
of a partition, it is made from batch headers and from markers. What a producer may append next is decided before a
batch is in the log: `producers` keeps the epochs and the open transaction of each producer for that.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError
from kproto.records.control import ControlType, read_end_marker
from kproto.records.record_batch import read_record_batch

if TYPE_CHECKING:
    from collections.abc import Iterable


class OpenTransaction(NamedTuple):
    """A transaction without a marker so far."""

    producer_epoch: int
    first_offset: int


class AbortedTransaction(NamedTuple):
    """A transaction that an ABORT marker has ended, as Kafka's transaction index has it."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the marker."""
    last_stable_offset: int
    """The last stable offset after the marker."""


class TransactionIndex:
    """The transactions of one partition, in the order of its log."""

    __slots__ = ("_aborted", "open")

    def __init__(self) -> None:
        self.open: dict[int, OpenTransaction] = {}
        """By producer id, the oldest first."""
        self._aborted: list[AbortedTransaction] = []
        """In the order of their markers."""

    @property
    def first_open_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if there is none."""
        return next(iter(self.open.values())).first_offset if self.open else None

    def add_batch(self, producer_id: int, producer_epoch: int, base_offset: int) -> None:
        """Add a transactional batch: it begins the transaction of its producer, or continues it."""
        self.open.setdefault(producer_id, OpenTransaction(producer_epoch, base_offset))

    def add_marker(self, producer_id: int, offset: int, outcome: ControlType) -> None:
        """End the transaction of a producer. A marker without records before it changes nothing."""
        ended = self.open.pop(producer_id, None)
        if ended is not None and outcome == ControlType.ABORT:
            first_open = self.first_open_offset
            stable = offset + 1 if first_open is None else first_open
            self._aborted.append(AbortedTransaction(producer_id, ended.first_offset, offset, stable))

    def aborted_since(self, offset: int) -> bool:
        """Return whether a marker at an offset or behind it has aborted a transaction."""
        return bool(self._aborted) and self._aborted[-1].last_offset >= offset

    def aborted_in(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records or a marker in ``[from_offset, to_offset)``."""
        found = []
        for index in range(bisect_left(self._aborted, from_offset, key=_last_offset), len(self._aborted)):
            transaction = self._aborted[index]
            if transaction.first_offset < to_offset:
                found.append(transaction)
            if transaction.last_stable_offset >= to_offset:
                break  # every later transaction begins behind the range
        return found

    def drop_before(self, offset: int) -> None:
        """Drop the aborted transactions whose marker is below an offset: their records are deleted."""
        if self._aborted and self._aborted[0].last_offset < offset:
            del self._aborted[: bisect_left(self._aborted, offset, key=_last_offset)]

    def drop_markers(self, offsets: Iterable[int]) -> None:
        """Drop the aborted transactions whose markers were compacted away: no consumer would see them end."""
        if self._aborted:
            dropped = frozenset(offsets)
            self._aborted = [one for one in self._aborted if one.last_offset not in dropped]

    def clear(self) -> None:
        """Drop all transactions, before the batches of the log are added again."""
        self.open.clear()
        self._aborted.clear()


def _last_offset(transaction: AbortedTransaction) -> int:
    return transaction.last_offset


KNOWN_MARKERS_MAX = 100
MARKER_SIZE_MAX = 100
ATTRIBUTES = slice(21, 23)
"""The position of the attributes in a batch."""
COUNT_POSITION = 57
"""The position of the number of records in a batch; the records are behind it."""


class Marker(NamedTuple):
    """What a marker says."""

    outcome: ControlType
    coordinator_epoch: int


def read_marker(batch: bytes) -> Marker | None:
    """Return the marker in a control batch; None if the batch has something else.

    Nearly all markers have equal records, whose decoding takes 40 us: those of the last batches are kept.
    """
    key = batch[ATTRIBUTES] + batch[COUNT_POSITION:]
    found = _known_markers.get(key)
    if found is None:
        with suppress(DecodeError):
            for record in read_record_batch(batch, check_crc=False)[0].records():
                found = Marker(*read_end_marker(record))
                if len(_known_markers) >= KNOWN_MARKERS_MAX:
                    _known_markers.clear()
                if len(key) <= MARKER_SIZE_MAX:
                    _known_markers[key] = found
                break
    return found


_known_markers: dict[bytes, Marker] = {}
"""By the attributes of a batch, and all behind them that its records follow from: their number and their bytes."""
