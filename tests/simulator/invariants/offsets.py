"""Committed offsets: what was acknowledged is there, what was refused is not, and nothing is invented.

The offset of a group and a partition is a register. Each commit has another value, so a value says which requests can
have written it. Two commits are in a certain order if the response to one arrived before the other was sent.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.messages.k09_offset_fetch import OffsetFetchRequest
from kproto.messages.k11_join_group import JoinGroupRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k14_sync_group import SyncGroupRequest
from tests.simulator.history import NEVER, Exchange, History
from tests.simulator.invariants.assignments import EPOCH_HEARTBEATS
from tests.simulator.invariants.consumer_groups import all_holdings, given_to_others
from tests.simulator.invariants.groups import consumer_groups_of
from tests.simulator.invariants.transaction_list import Transaction, transactions_of
from tests.simulator.invariants.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

NONE = -1
"""The offset of a partition without a commit."""
UNCERTAIN = frozenset({-1, 7, 13, 15, 56})
"""Errors that do not say whether the write has happened: the log, or what is behind it, has failed."""
UNCERTAIN_IF_FAILED = frozenset({16})
"""Errors that do not say it, either, if a sync has failed: it is unknown what is on the disk."""
CLOCK_SLACK_MS = 12_000
"""By how much offsets may expire earlier in the simulation's time: clocks of brokers run fast, and are set ahead."""

Key = tuple[str, str, int]
"""Group, topic, partition."""


class Attempt(NamedTuple):
    """A request that commits a value, from its first to its last moment."""

    exchange: Exchange
    starts: float
    ends: float
    """When it was complete; `NEVER`: it may still arrive."""
    visible: float
    """When every reader has to see it, if it was acknowledged."""
    ends_acknowledged: bool
    may_land: bool


@dataclass(slots=True)
class Write:
    """A value of a register, and the requests that commit it."""

    value: int
    attempts: list[Attempt] = field(default_factory=list)
    aborted: bool = False
    """Whether it belongs to a transaction that was not committed."""

    @property
    def may_land(self) -> bool:
        return not self.aborted and any(attempt.may_land for attempt in self.attempts)

    @property
    def starts(self) -> float:
        return min(attempt.starts for attempt in self.attempts)

    @property
    def ends(self) -> float:
        """The stamp after which the value is not written any more."""
        return max(attempt.ends for attempt in self.attempts if attempt.may_land)


class Read(NamedTuple):
    exchange: Exchange
    value: int


def check_offsets(history: History) -> Iterator[Violation]:
    ends = _Ends(history)
    uncertain = UNCERTAIN | UNCERTAIN_IF_FAILED if history.stamps("log failed") else UNCERTAIN
    writes: dict[Key, dict[int, Write]] = defaultdict(dict)
    for one in history.of(OffsetCommitRequest):
        yield from _add_commit(one, writes, ends, uncertain)
    for transaction in transactions_of(history):
        _add_transaction(transaction, writes, uncertain)
    alive_ms = _last_members(history)
    for key, read in reads_of(history):
        yield from _check_read(key, read, writes[key], alive_ms.get(key[0], []), history.retention_ms)


class _Ends:
    """When commits of members became those of an old generation, or of a former owner."""

    def __init__(self, history: History) -> None:
        self._generations: dict[str, list[tuple[int, float]]] = defaultdict(list)
        """The generations of each classic group, with the stamp at which a member had heard of its assignment."""
        for one in history.of(SyncGroupRequest):
            if one.response is not None and not one.response.error_code:
                self._generations[one.request.group_id].append((one.request.generation_id, one.received))
        for group in consumer_groups_of(history):  # only the owner of a partition has to have its newest epoch
            self._generations.pop(group, None)
        self._holdings = all_holdings(history)

    def of(self, one: Exchange, partition: int) -> float:
        """Return the stamp after which a commit of this request must not land."""
        request = one.request
        generation = request.generation_id_or_member_epoch
        if generation < 0:
            return NEVER
        generations = self._generations.get(request.group_id)
        if generations:
            return min((stamp for number, stamp in generations if number > generation), default=NEVER)
        return given_to_others(self._holdings, request.group_id, request.member_id, partition, one.sent)


def _add_commit(
    one: Exchange, writes: dict[Key, dict[int, Write]], ends: _Ends, uncertain: frozenset[int]
) -> Iterator[Violation]:
    request = one.request
    codes = _codes(one)
    for topic in request.topics:
        for partition in topic.partitions:
            key = request.group_id, topic.name, partition.partition_index
            code = codes.get((topic.name, partition.partition_index))
            ended = ends.of(one, partition.partition_index)
            if code == 0 and one.sent > ended:
                yield Violation(
                    "no commit of an old generation",
                    f"{key}: {one.client} commits {partition.committed_offset} in generation "
                    f"{request.generation_id_or_member_epoch} at {one.sent_ms} ms, and a newer one had begun",
                )
            attempt = Attempt(
                one,
                one.sent,
                min(one.received if code is not None else NEVER, max(ended, one.sent)),
                one.received,
                code == 0,
                (code is None or code == 0 or code in uncertain) and one.sent < ended,
            )
            write = writes[key].setdefault(partition.committed_offset, Write(partition.committed_offset))
            write.attempts.append(attempt)


def _codes(one: Exchange) -> dict[tuple[str, int], int]:
    if one.response is None:
        return {}
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in one.response.topics
        for partition in topic.partitions
    }


def _add_transaction(transaction: Transaction, writes: dict[Key, dict[int, Write]], uncertain: frozenset[int]) -> None:
    """Add the offsets of a transaction: they are written at some time until its end is acknowledged.

    Kafka's coordinator acknowledges the end when its decision is in the log, and writes the markers then. Until these
    are there, only readers with ``require_stable`` learn that the offsets are about to change.
    """
    for one in transaction.offset_commits:
        codes = _codes(one)
        for topic in one.request.topics:
            for partition in topic.partitions:
                key = one.request.group_id, topic.name, partition.partition_index
                code = codes.get((topic.name, partition.partition_index))
                is_acknowledged = code == 0 and transaction.outcome == "committed"
                attempt = Attempt(
                    one,
                    one.sent,
                    transaction.ended if is_acknowledged else NEVER,
                    transaction.complete,
                    is_acknowledged,
                    code is None or code == 0 or code in uncertain,
                )
                write = writes[key].setdefault(partition.committed_offset, Write(partition.committed_offset))
                write.attempts.append(attempt)
                write.aborted = transaction.outcome == "aborted"


def reads_of(history: History) -> Iterator[tuple[Key, Read]]:
    """Yield the offsets that clients have fetched."""
    for one in history.of(OffsetFetchRequest):
        if one.response is None:
            continue
        groups = one.response.groups or [one.response]
        for group in groups:
            if group.error_code:
                continue
            group_id = one.request.group_id if group is one.response else group.group_id
            for topic in group.topics:
                for partition in topic.partitions:
                    if not partition.error_code:
                        yield (group_id, topic.name, partition.partition_index), Read(one, partition.committed_offset)


def _check_read(
    key: Key, read: Read, writes: dict[int, Write], member_ms: list[int], retention_ms: int
) -> Iterator[Violation]:
    one = read.exchange
    where = f"{key}: {one.client} reads {read.value} at {one.received_ms} ms"
    before = [
        attempt
        for write in writes.values()
        if not write.aborted and write.value != read.value
        for attempt in write.attempts
        if attempt.ends_acknowledged and (attempt.ends if one.request.require_stable else attempt.visible) < one.sent
    ]
    if read.value == NONE:
        if before:
            base_ms = max(attempt.exchange.sent_ms for attempt in before)
            base_ms = max([base_ms, *(at_ms for at_ms in member_ms if at_ms < one.received_ms)])
            if one.received_ms < base_ms + retention_ms - CLOCK_SLACK_MS:
                yield Violation("acknowledged offsets are kept", f"{where}, {base_ms} ms had one")
        return
    write = writes.get(read.value)
    if write is None or write.starts > one.received:
        yield Violation("offsets are not invented", f"{where}, which no client had committed")
    elif write.aborted:
        yield Violation("transactions are atomic", f"{where}, of a transaction that was not committed")
    elif not write.may_land:
        yield Violation("refused commits do not land", f"{where}, which was refused")
    else:
        newer = [attempt for attempt in before if attempt.starts > write.ends]
        if newer:
            value = newer[-1].exchange
            yield Violation(
                "acknowledged offsets are kept", f"{where}, but a commit of {value.sent_ms} ms was acknowledged later"
            )


def _last_members(history: History) -> dict[str, list[int]]:
    """Return when members of each group sent requests that succeeded: their group was not empty then."""
    found: dict[str, list[int]] = defaultdict(list)
    for one in history.of(HeartbeatRequest, SyncGroupRequest, JoinGroupRequest, *EPOCH_HEARTBEATS):
        if one.response is not None and not one.response.error_code:
            found[one.request.group_id].append(one.sent_ms)
    return found
