"""How transactions end: for a record in one, the first marker of its producer behind it (LF-21, LF-32).

A marker may stand in a later block or a later segment than the record. So the log is read ahead, by its headers, and
only as far as is needed; what was passed is remembered, and never read again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.batches import MAGIC_POSITION
from kproto.records.control import ControlType, read_end_marker
from kproto.records.record_batch import CONTROL, MAGIC, NO_PRODUCER_ID, TRANSACTIONAL
from kproto.spark.decode.blocks import first_field
from kproto.spark.decode.plain import check_marker, checked_batch, checked_records
from kproto.spark.decode.tables import ABORTED, COMMITTED, PENDING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kproto.spark.decode.blocks import Block

ATTRIBUTES_LOW_AT, PRODUCER_AT = 22, 43


class Marker(NamedTuple):
    """The end of a transaction."""

    producer_id: int
    offset: int
    state: int
    """`COMMITTED` or `ABORTED`."""


class Begun(NamedTuple):
    """A batch in a transaction."""

    producer_id: int
    offset: int


def transactional_events(block: Block, start_offset: int) -> Iterator[Marker | Begun]:
    """Yield what a block has of transactions, in order, from an offset on.

    Raises:
        Damaged: while iterating: a marker can't be read.
    """
    data = block.data
    for start in block.starts:
        flags = data[start + ATTRIBUTES_LOW_AT]
        if not flags & TRANSACTIONAL or data[start + MAGIC_POSITION] != MAGIC:
            continue
        producer_id = int.from_bytes(data[start + PRODUCER_AT : start + PRODUCER_AT + 8], "big", signed=True)
        if producer_id == NO_PRODUCER_ID or first_field(data, start) < start_offset:
            continue
        if flags & CONTROL:
            yield from _markers(block, start, producer_id)
        else:
            yield Begun(producer_id, first_field(data, start))


def _markers(block: Block, start: int, producer_id: int) -> Iterator[Marker]:
    batch = checked_batch(block, start, check_crc=True)
    for record in checked_records(block, start, batch):
        check_marker(block, start, record)
        outcome, _ = read_end_marker(record)
        yield Marker(producer_id, record.offset, COMMITTED if outcome is ControlType.COMMIT else ABORTED)


class Outcomes:
    """Tells how transactions of a log end; ``ahead`` yields its blocks from the first record asked about on."""

    def __init__(self, ahead: Iterable[Block]) -> None:
        self._blocks = iter(ahead)
        self._offsets: defaultdict[int, list[int]] = defaultdict(list)
        self._states: defaultdict[int, list[int]] = defaultdict(list)

    def __call__(self, pairs: Sequence[tuple[int, int]]) -> list[int]:
        """Return the state of each ``(producer id, offset)``; offsets rise from call to call.

        Raises:
            Damaged: the log can't be read ahead.
        """
        return [self._state(producer_id, offset) for producer_id, offset in pairs]

    def _state(self, producer_id: int, offset: int) -> int:
        offsets, states = self._offsets[producer_id], self._states[producer_id]
        while not offsets or offsets[-1] <= offset:
            block = next(self._blocks, None)
            if block is None:
                return PENDING
            self._remember(block)
        return states[bisect_right(offsets, offset)]

    def _remember(self, block: Block) -> None:
        for event in transactional_events(block, 0):
            if isinstance(event, Marker):
                self._offsets[event.producer_id].append(event.offset)
                self._states[event.producer_id].append(event.state)
