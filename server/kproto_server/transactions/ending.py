"""The end of transactions: the decision, the markers behind it, and the record that all markers are written.

Theory of operation. The decision is appended, and behind it the markers of all partitions; when the log has those, the
end of the transaction. A crash leaves the beginning of what was appended, so `finish` goes on from the decision. If the
log cannot write the decision, it refuses the markers, too. Real brokers write the markers after the response to EndTxn;
here they are visible when it comes. The end of the transaction is not waited for: without it, a restart writes the
markers again, which changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.deferred import NO_RESPONSE
from kproto_server.transactions import transitions
from kproto_server.transactions.marker_writer import MarkerWriter, end_marker
from kproto_server.transactions.transaction import PREPARED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.clock import Timer
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.deferred import NoResponse
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.transactions.transaction import Transaction, TransactionValues
    from kproto_server.transactions.transaction_log import TransactionLog

RETRY_MS = 100
"""How long markers wait that could not be written, as a partition has no leader."""
MARKERS_AT_ONCE = 200
"""Markers that are written in one turn: about 5 ms. Those of larger transactions follow in the next ones."""


class Outcome:
    """The outcome of a request whose change the log has to write first."""

    __slots__ = ("error", "values")

    def __init__(self, error: int = 0, values: TransactionValues | None = None) -> None:
        self.error: int = error
        self.values: TransactionValues | None = values


class TransactionEnding:
    """Decides transactions, and writes their markers in turns."""

    def __init__(
        self,
        transactions: Mapping[str, Transaction],
        log: TransactionLog,
        cluster: Cluster,
        groups: GroupCoordinator,
        log_manager: LogManager,
    ) -> None:
        """``transactions``: those of the coordinator, by transactional id."""
        self._transactions = transactions
        self._log = log
        self._cluster = cluster
        self._groups = groups
        self._markers = MarkerWriter(cluster, groups, log_manager)
        self._with_markers: dict[str, None] = {}
        """Transactional ids with markers that the next turns write."""
        self._without_leader: dict[str, None] = {}
        """Transactional ids with markers for partitions without a leader."""
        self._tried_version = -1
        """The version of the cluster at the last attempt to write them."""
        self._timer: Timer | None = None
        """The timer of the next turn."""

    def decide(self, transaction: Transaction, decided: TransactionValues, now_ms: int) -> Outcome:
        """Append the decision to end a transaction, and the markers behind it."""
        outcome = Outcome(values=decided)

        def settle(error: int) -> None:
            outcome.error = error
            if error:  # there are no markers without a decision
                transaction.markers_left = []
                self._with_markers.pop(transaction.transactional_id, None)

        self._log.append(transaction, decided, now_ms, settle)
        if not outcome.error:
            transaction.markers_left = sorted(decided.partitions, reverse=True)
            transaction.markers_without_leader = []
            self._write_markers(transaction, decided, MARKERS_AT_ONCE, now_ms)
            if transaction.markers_left:
                self._finish_at(now_ms)
        return outcome

    def resume(self, transaction: Transaction) -> None:
        """Have `finish` write the markers of a transaction that was loaded, if it was decided."""
        if transaction.values.status in PREPARED:
            transaction.markers_left = sorted(transaction.values.partitions, reverse=True)
            self._with_markers[transaction.transactional_id] = None

    def finish_after_change(self) -> None:
        """If the cluster has changed, finish the transactions that wait for leaders."""
        if self._without_leader and self._cluster.version != self._tried_version:
            self.finish(self._groups.clock.now_ms())

    def finish(self, now_ms: int) -> None:
        """Go on with transactions that have markers to be written, for one turn."""
        self._tried_version = self._cluster.version
        self._with_markers |= self._without_leader
        for transactional_id in self._without_leader:
            transaction = self._transactions.get(transactional_id)
            if transaction is not None:
                transaction.markers_left += transaction.markers_without_leader
                transaction.markers_without_leader.clear()
        self._without_leader.clear()
        left = MARKERS_AT_ONCE
        while self._with_markers and left > 0:
            transaction = self._transactions.get(transactional_id := next(iter(self._with_markers)))
            if transaction is None:
                del self._with_markers[transactional_id]
            else:
                left -= 1 + self._write_markers(transaction, transaction.newest, left, now_ms)
        if self._with_markers:
            self._finish_at(now_ms)

    def forget(self) -> None:
        """Drop all markers that are not written yet."""
        self._with_markers.clear()
        self._without_leader.clear()

    def _write_markers(self, transaction: Transaction, decided: TransactionValues, limit: int, now_ms: int) -> int:
        """Write at most ``limit`` markers, and end the transaction once the log has the last one; return how many."""
        name, left = transaction.transactional_id, transaction.markers_left
        if self._markers.lacks_index(left):
            self._with_markers[name] = None
            return limit  # the step was the work of this turn
        if not self._log.keep_epoch(name):
            transaction.markers_without_leader += left
            left.clear()
        count = min(limit, len(left))
        partitions = left[: -count - 1 : -1]
        del left[len(left) - count :]
        marker = end_marker(decided, self._log.coordinator_epoch(name))
        self._markers.write(partitions, marker, now_ms, transaction.markers_without_leader)
        if left:
            self._with_markers[name] = None
            return len(partitions)
        self._with_markers.pop(name, None)

        def end() -> NoResponse:
            if transaction.newest is not decided:
                return NO_RESPONSE  # the log could not write the decision
            if transaction.markers_without_leader:
                self._without_leader[name] = None
                self._tried_version = self._cluster.version
                self._finish_at(now_ms + RETRY_MS)
            else:
                self._end(transaction, decided, now_ms)
            return NO_RESPONSE

        self._groups.log.then(end)
        return len(partitions)

    def _end(self, transaction: Transaction, decided: TransactionValues, now_ms: int) -> None:
        """End a transaction whose markers the log has; no request waits for the record that says so."""
        transaction.values = transitions.completed(decided, now_ms)
        self._log.write(transaction.transactional_id, transaction.values, now_ms)

    def _finish_at(self, due_ms: int) -> None:
        """Have the clock call `finish`, at this time at the latest."""
        if self._timer is not None and self._timer.action is not None:
            if self._timer.due_ms <= due_ms:
                return
            self._timer.cancel()
        clock = self._groups.clock
        self._timer = clock.call_at(due_ms, lambda: self.finish(clock.now_ms()), in_background=True)
