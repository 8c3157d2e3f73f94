"""Records: what was acknowledged is in the log once, what was refused is not, and fenced producers write nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from kproto.messages.k00_produce import ProduceRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.records.record_batch import read_record_batch
from tests.simulator.invariants.final_log import final_log
from tests.simulator.invariants.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.records.batch_header import RecordBatchHeader
    from tests.simulator.history import Exchange, History

UNCERTAIN = frozenset({-1, 7, 20, 56})
"""Errors that do not say whether the batch was appended."""


class Sent(NamedTuple):
    """A batch that a producer sent."""

    exchange: Exchange
    partition: int
    header: RecordBatchHeader
    values: list[bytes]
    error: int | None
    """None: no response came."""
    base_offset: int


def sent_batches(history: History) -> list[Sent]:
    """Return all batches that producers sent."""
    found = []
    for one in history.of(ProduceRequest):
        for topic_index, topic in enumerate(one.request.topic_data):
            for index, data in enumerate(topic.partition_data):
                batch, _ = read_record_batch(data.records, check_crc=False)
                error, base_offset = None, -1
                if one.response is not None:
                    result = one.response.responses[topic_index].partition_responses[index]
                    error, base_offset = result.error_code, result.base_offset
                values = [record.value or b"" for record in batch.records()]
                found.append(Sent(one, data.index, batch.header, values, error, base_offset))
    return found


def check_records(history: History) -> Iterator[Violation]:
    sent = sent_batches(history)
    yield from _check_fencing(history, sent)
    yield from _check_epochs(history)
    log = final_log(history)
    if log is None:
        return
    offsets: dict[bytes, list[int]] = defaultdict(list)
    for values in log.all_records.values():
        for offset, value in values.items():
            offsets[value].append(offset)
    for value, found in offsets.items():
        if len(found) > 1:
            yield Violation("records are appended once", f"{value!r} has offsets {found}")
    attempts: dict[bytes, list[int | None]] = defaultdict(list)
    for batch in sent:
        for index, value in enumerate(batch.values):
            attempts[value].append(batch.error)
            expected = batch.base_offset + index
            if batch.error == 0 and log.all_records[batch.partition].get(expected) != value:
                yield Violation(
                    "acknowledged records are kept",
                    f"{value!r} of {batch.exchange.client} was acknowledged at {batch.exchange.received_ms} ms with "
                    f"offset {expected} of partition {batch.partition}, and is not there",
                )
    for value in offsets:
        errors = attempts.get(value)
        if errors is None:
            yield Violation("records are not invented", f"no client has sent {value!r}")
        elif all(error is not None and error != 0 and error not in UNCERTAIN for error in errors):
            yield Violation("refused records are not appended", f"{value!r}, refused with {errors}")


def _epochs(history: History) -> list[Exchange]:
    """Return the successful InitProducerIds of transactional producers."""
    return [
        one
        for one in history.of(InitProducerIdRequest)
        if one.request.transactional_id is not None and one.response is not None and not one.response.error_code
    ]


def _check_fencing(history: History, sent: list[Sent]) -> Iterator[Violation]:
    """A batch is not appended if it was sent after another producer had got a newer epoch."""
    epochs = _epochs(history)
    for batch in sent:
        if batch.error != 0:
            continue
        for one in epochs:
            is_same = one.response.producer_id == batch.header.producer_id
            if (
                is_same
                and one.received < batch.exchange.sent
                and batch.header.producer_epoch < one.response.producer_epoch
            ):
                yield Violation(
                    "no writes after fencing",
                    f"{batch.exchange.client} appends with epoch {batch.header.producer_epoch} at "
                    f"{batch.exchange.sent_ms} ms; {one.client} had got {one.response.producer_epoch} at "
                    f"{one.received_ms} ms",
                )
                break


def _check_epochs(history: History) -> Iterator[Violation]:
    """A producer gets a greater epoch than one that had got its own before, or another producer id."""
    epochs = _epochs(history)
    for later in epochs:
        for earlier in epochs:
            if earlier.received > later.sent or earlier is later:
                continue
            if earlier.response.producer_id != later.response.producer_id:
                continue
            # A producer that repeats its request (KIP-360) may get the same epoch again.
            least = earlier.response.producer_epoch + (later.request.producer_id < 0)
            if earlier.request.transactional_id != later.request.transactional_id:
                yield Violation(
                    "producer ids are unique", f"{earlier.client} and {later.client}: {later.response.producer_id}"
                )
            elif later.response.producer_epoch < least:
                yield Violation(
                    "epochs rise",
                    f"{later.client} gets epoch {later.response.producer_epoch} at {later.received_ms} ms, after "
                    f"{earlier.response.producer_epoch}",
                )
