"""Share groups (KIP-932): a record is acquired by one member at a time, and by none after it was accepted."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kproto.messages.k78_share_fetch import ShareFetchRequest
from kproto.messages.k79_share_acknowledge import ShareAcknowledgeRequest
from tests.simulator.history import NEVER, Exchange, History
from tests.simulator.invariants.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

CLOCK_TOLERANCE = 0.9
"""The clocks of brokers run faster than those of clients by less than this."""
ACCEPT, REJECT = 1, 3

Key = tuple[str | None, int, int]
"""Group, partition, offset."""


@dataclass(slots=True, eq=False)
class Acquisition:
    """A record of a member, from the response that brings it to what gives it back."""

    exchange: Exchange
    until_ms: int
    """When its lock may expire."""
    ends: float = NEVER


def check_share_groups(history: History) -> Iterator[Violation]:
    acquisitions, finished = _acquisitions(history)
    crashes = history.stamps("crash") + history.stamps("stop node")
    for key, found in acquisitions.items():
        for later in found:
            for earlier in found:
                if _member(earlier) == _member(later):
                    continue
                # A client that was paused reads a response late: the request has to come after the first response.
                if not earlier.exchange.received < later.exchange.sent < later.exchange.received < earlier.ends:
                    continue
                has_crashed = any(earlier.exchange.sent < stamp < later.exchange.received for stamp in crashes)
                if not has_crashed and later.exchange.received_ms < earlier.until_ms:
                    yield Violation(
                        "one member has a record",
                        f"{key}: {later.exchange.client} acquires it at {later.exchange.received_ms} ms, which "
                        f"{earlier.exchange.client} has since {earlier.exchange.received_ms} ms",
                    )
            stamp, client = finished.get(key, (NEVER, ""))
            if stamp < later.exchange.sent:
                yield Violation(
                    "acknowledged records do not come back",
                    f"{key}: {later.exchange.client} acquires it at {later.exchange.received_ms} ms, after {client} "
                    "has acknowledged it",
                )


def _member(acquisition: Acquisition) -> tuple[str, int]:
    return acquisition.exchange.client, acquisition.exchange.incarnation


def _acquisitions(history: History) -> tuple[dict[Key, list[Acquisition]], dict[Key, tuple[float, str]]]:
    """Return who acquired each record, and when a response reported that it was accepted or rejected."""
    acquisitions: dict[Key, list[Acquisition]] = defaultdict(list)
    finished: dict[Key, tuple[float, str]] = {}
    held: dict[tuple[str, int, int], dict[Key, Acquisition]] = defaultdict(dict)
    """By client, incarnation and node."""
    ends = [(event.stamp, event.detail) for event in history.events if event.kind in ("client starts", "client stops")]
    for one in history.exchanges:
        mine = held[one.client, one.incarnation, one.node_id]
        if not isinstance(one.request, (ShareFetchRequest, ShareAcknowledgeRequest)):
            if one.response is None:
                _end(mine, one)
            continue
        if isinstance(one.request, ShareAcknowledgeRequest):
            _take_acknowledgements(one, mine, finished)
        if one.request.share_session_epoch <= 0 or one.response is None:
            _end(mine, one)
        if isinstance(one.request, ShareFetchRequest) and one.response is not None and not one.response.error_code:
            lock_ms = int(one.response.acquisition_lock_timeout_ms * CLOCK_TOLERANCE)
            for topic in one.response.responses:
                for partition in topic.partitions:
                    for batch in partition.acquired_records:
                        for offset in range(batch.first_offset, batch.last_offset + 1):
                            key = one.request.group_id, partition.partition_index, offset
                            ended = min(
                                (at for at, name in ends if name == one.client and at > one.sent), default=NEVER
                            )
                            mine[key] = Acquisition(one, one.sent_ms + lock_ms, ended)
                            acquisitions[key].append(mine[key])
    return acquisitions, finished


def _end(mine: dict[Key, Acquisition], one: Exchange) -> None:
    """End the acquisitions of a session: it ends, or begins again, or its connection does without a response."""
    for acquisition in mine.values():
        acquisition.ends = min(acquisition.ends, one.sent)
    mine.clear()


def _take_acknowledgements(one: Exchange, mine: dict[Key, Acquisition], finished: dict[Key, tuple[float, str]]) -> None:
    request = one.request
    errors = {}
    if one.response is not None and not one.response.error_code:
        errors = {
            partition.partition_index: partition.error_code
            for topic in one.response.responses
            for partition in topic.partitions
        }
    for topic in request.topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                for offset in range(batch.first_offset, batch.last_offset + 1):
                    key = request.group_id, partition.partition_index, offset
                    acquisition = mine.pop(key, None)
                    if acquisition is not None:
                        acquisition.ends = min(acquisition.ends, one.sent)
                    if batch.acknowledge_types[0] in (ACCEPT, REJECT) and errors.get(partition.partition_index) == 0:
                        finished.setdefault(key, (one.received, one.client))
