"""Find out how transactions end: the first end marker of the same producer after a record (LF-21, LF-32).

The marker can be in a later block or a later segment than the record. The log is therefore read ahead, by batch
headers, and only as far as needed. Markers that were passed are kept and never read again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from kproto.logs.batches import batch_at
from kproto.records.batch_header import (
    CONTROL,
    MAGIC,
    MAGIC_POSITION,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
    header_struct,
    position_of,
)
from kproto.records.batches import first_offset
from kproto.records.control import ControlType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kproto.logs.blocks import Block

TXN_STATES = ("none", "pending", "committed", "aborted")
NONE, PENDING, COMMITTED, ABORTED = range(4)
"""Indexes into `TXN_STATES`."""

ATTRIBUTES_LOW_POSITION = position_of("attributes") + 1
_read_producer_id = header_struct("producer_id").unpack_from


class EndMarker(NamedTuple):
    """The end of a transaction."""

    producer_id: int
    offset: int
    state: int
    """`COMMITTED` or `ABORTED`."""


class TransactionalBatch(NamedTuple):
    """A batch in a transaction."""

    producer_id: int
    offset: int


def transactional_events(block: Block, start_offset: int) -> Iterator[EndMarker | TransactionalBatch]:
    """Yield the end markers and transactional batches of a block from an offset on, in order.

    Raises:
        CorruptLog: while iterating: a marker cannot be decoded.
    """
    data = block.data
    for start in block.starts:
        flags = data[start + ATTRIBUTES_LOW_POSITION]
        if not flags & TRANSACTIONAL or data[start + MAGIC_POSITION] != MAGIC:
            continue
        (producer_id,) = _read_producer_id(data, start)
        if producer_id == NO_PRODUCER_ID or first_offset(data, start) < start_offset:
            continue
        if flags & CONTROL:
            yield from _markers(block, start, producer_id)
        else:
            yield TransactionalBatch(producer_id, first_offset(data, start))


def _markers(block: Block, start: int, producer_id: int) -> Iterator[EndMarker]:
    placed = batch_at(block, start)
    for record in placed.records():
        outcome, _ = placed.end_marker(record)
        yield EndMarker(producer_id, record.offset, COMMITTED if outcome is ControlType.COMMIT else ABORTED)


class TransactionOutcomes:
    """How the transactions of a log end. ``blocks_from`` returns the log's blocks from an offset on.

    It is called once, with the first offset that is asked about: a log without transactions is not read ahead.
    """

    def __init__(self, blocks_from: Callable[[int], Iterable[Block]]) -> None:
        self._blocks_from = blocks_from
        self._blocks: Iterator[Block] | None = None
        self._offsets: defaultdict[int, list[int]] = defaultdict(list)
        self._states: defaultdict[int, list[int]] = defaultdict(list)

    def __call__(self, pairs: Sequence[tuple[int, int]]) -> list[int]:
        """Return the state of the transaction of each ``(producer id, offset)``; offsets rise from call to call.

        Raises:
            CorruptLog: the log cannot be read ahead.
        """
        if self._blocks is None and pairs:
            self._blocks = iter(self._blocks_from(pairs[0][1]))
        return [self._state(producer_id, offset) for producer_id, offset in pairs]

    def _state(self, producer_id: int, offset: int) -> int:
        offsets, states = self._offsets[producer_id], self._states[producer_id]
        while not offsets or offsets[-1] <= offset:
            assert self._blocks is not None, "set by the first call with a pair"
            block = next(self._blocks, None)
            if block is None:
                return PENDING
            self._remember(block)
        return states[bisect_right(offsets, offset)]

    def _remember(self, block: Block) -> None:
        for event in transactional_events(block, 0):
            if isinstance(event, EndMarker):
                self._offsets[event.producer_id].append(event.offset)
                self._states[event.producer_id].append(event.state)
