"""The batches of fetched records: where they begin and end, and which of them belong to aborted transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.records.batch_header import CONTROL, TRANSACTIONAL, header_struct
from kproto.records.batches import batch_end
from kproto.records.control import ControlType
from kproto_server.partition_log.transactions import read_marker
from kproto_server.share_groups.in_flight import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto_server.share_groups.acquisition import Acquired

_HEADER = header_struct("base_offset", "attributes", "last_offset_delta", "producer_id")


class FetchedBatch(NamedTuple):
    """One batch of fetched records."""

    span: Span
    start: int
    end: int
    """Positions in the records."""
    producer_id: int
    attributes: int


def fetched_batches(records: bytes) -> list[FetchedBatch]:
    """Return the batches of records from a log, which are whole and of magic 2."""
    found, start = [], 0
    while (end := batch_end(records, start)) is not None:
        base_offset, attributes, delta, producer_id = _HEADER.unpack_from(records, start)
        found.append(FetchedBatch(Span(base_offset, base_offset + delta), start, end, producer_id, attributes))
        start = end
    return found


def aborted_spans(records: bytes, batches: Iterable[FetchedBatch], aborted: Iterable[tuple[int, int]]) -> list[Span]:
    """Return the batches of aborted transactions, given as first offset and producer id."""
    left = sorted(aborted, reverse=True)
    producers: set[int] = set()
    found = []
    for batch in batches:
        while left and left[-1][0] <= batch.span.last_offset:
            producers.add(left.pop()[1])
        if batch.attributes & CONTROL:
            marker = read_marker(records[batch.start : batch.end])
            if marker is not None and marker.outcome == ControlType.ABORT:
                producers.discard(batch.producer_id)
                continue
        if batch.attributes & TRANSACTIONAL and batch.producer_id in producers:
            found.append(batch.span)
    return found


def sliced(records: bytes, batches: Sequence[FetchedBatch], acquired: Sequence[Acquired]) -> bytes:
    """Return the batches from the first to the last that have acquired records."""
    first_offset, last_offset = acquired[0].first_offset, acquired[-1].last_offset
    kept = [one for one in batches if one.span.last_offset >= first_offset and one.span.base_offset <= last_offset]
    return records[kept[0].start : kept[-1].end] if kept else records
