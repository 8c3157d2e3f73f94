"""The transactions of a history, as the requests of their producers show them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from kproto.messages.k00_produce import ProduceRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k28_txn_offset_commit import TxnOffsetCommitRequest
from tests.simulator.history import NEVER, Exchange, History

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class Transaction:
    """What one producer did from one EndTxn to the next."""

    produced: list[Exchange] = field(default_factory=list)
    offset_commits: list[Exchange] = field(default_factory=list)
    ends: list[Exchange] = field(default_factory=list)
    complete: float = NEVER
    """A stamp at which all its markers are written: a later request was accepted that waits for them."""

    @property
    def outcome(self) -> Literal["committed", "aborted", "unknown"]:
        commits = [one for one in self.ends if one.request.committed]
        if not commits:
            return "aborted"
        return "committed" if any(_succeeded(one) for one in commits) else "unknown"

    @property
    def ended(self) -> float:
        """The stamp of the first response that reports the end."""
        return min((one.received for one in self.ends if _succeeded(one)), default=NEVER)

    @property
    def name(self) -> str:
        one = next(iter((*self.produced, *self.offset_commits, *self.ends)))
        return f"the transaction of {one.client}.{one.incarnation} from {one.sent_ms} ms on"


def _succeeded(one: Exchange) -> bool:
    return one.response is not None and not one.response.error_code


def transactions_of(history: History) -> list[Transaction]:
    """Return all transactions."""
    by_producer: dict[tuple[str, int], list[Exchange]] = {}
    for one in history.of(InitProducerIdRequest, ProduceRequest, TxnOffsetCommitRequest, EndTxnRequest):
        if one.request.transactional_id is not None:
            by_producer.setdefault((one.client, one.incarnation), []).append(one)
    found = [transaction for exchanges in by_producer.values() for transaction in _split(exchanges)]
    waited = [one for one in history.of(InitProducerIdRequest, AddOffsetsToTxnRequest) if _succeeded(one)]
    for transaction in found:
        names = {one.request.transactional_id for one in transaction.ends}
        later = [
            one.received for one in waited if one.sent > transaction.ended and one.request.transactional_id in names
        ]
        transaction.complete = min(later, default=NEVER)
    return found


def _split(exchanges: Iterable[Exchange]) -> list[Transaction]:
    """Return the transactions of one producer: requests after an EndTxn belong to the next one."""
    found = [Transaction()]
    for one in exchanges:
        current = found[-1]
        if isinstance(one.request, EndTxnRequest):
            current.ends.append(one)
            continue
        if current.ends or isinstance(one.request, InitProducerIdRequest):
            current = Transaction()
            found.append(current)
        if isinstance(one.request, ProduceRequest):
            current.produced.append(one)
        elif isinstance(one.request, TxnOffsetCommitRequest):
            current.offset_commits.append(one)
    return [one for one in found if one.produced or one.offset_commits or one.ends]
