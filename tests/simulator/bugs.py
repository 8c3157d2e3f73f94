"""Bugs that tests plant in the broker, to see that the simulator finds them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from kproto.codes import ErrorCode
from kproto_server.coordinator import commit
from kproto_server.coordinator.consumer_groups import heartbeat, reconciliation
from kproto_server.coordinator.membership import rebalance
from kproto_server.coordinator.membership.phases import DelayedJoin
from kproto_server.coordinator.streams_groups.group import StreamsGroup
from kproto_server.partition_log.producers import ProducerStates
from kproto_server.share_groups.in_flight import Delivery, RecordState
from kproto_server.transactions.coordinator import TransactionCoordinator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from kproto_server.coordinator.consumer_groups.data import ConsumerMember
    from kproto_server.coordinator.consumer_groups.reconciliation import Step


@contextmanager
def old_generation_commits() -> Iterator[None]:
    """A commit of an old generation is accepted."""
    real = commit._member_error

    def accept(*arguments: Any) -> int:
        error = real(*arguments)
        return 0 if error == ErrorCode.ILLEGAL_GENERATION else error

    with mock.patch.object(commit, "_member_error", accept):
        yield


@contextmanager
def marker_lost_at_crash() -> Iterator[None]:
    """Of a transaction that was decided before a crash, one marker is never written."""
    real = TransactionCoordinator.loaded

    def lose(self: TransactionCoordinator, transactions: Any) -> None:
        real(self, transactions)
        for transaction in transactions:
            del transaction.markers_left[:1]

    with mock.patch.object(TransactionCoordinator, "loaded", lose):
        yield


@contextmanager
def assigned_before_revoked() -> Iterator[None]:
    """A rebalance does not wait for the members that have not joined again."""

    def complete(coordinator: Any, group: Any, now_ms: int) -> None:
        if group.pending_join_count and isinstance(group.phase, DelayedJoin):
            rebalance.complete_join(coordinator, group, now_ms)

    with mock.patch.object(rebalance, "try_complete_join", complete):
        yield


@contextmanager
def assigned_before_released() -> Iterator[None]:
    """A member of a consumer group (KIP-848) gets partitions that another one has not revoked."""
    real = reconciliation.reconcile

    def hurry(member: ConsumerMember, step: Step) -> ConsumerMember:
        return real(member, step._replace(owners={}))

    with mock.patch.object(heartbeat, "reconcile", hurry):
        yield


class _NoTasks(dict[Any, str]):
    """Forgets which process has which task."""

    def __setitem__(self, task: Any, process_id: str) -> None:
        pass


@contextmanager
def task_given_before_released() -> Iterator[None]:
    """A member of a streams group gets tasks that another one has not revoked."""
    real = StreamsGroup.__init__

    def forget(self: StreamsGroup, *arguments: Any) -> None:
        real(self, *arguments)
        self.active_processes = _NoTasks()

    with mock.patch.object(StreamsGroup, "__init__", forget):
        yield


@contextmanager
def fenced_producer_appends() -> Iterator[None]:
    """The batch of a producer with an old epoch is appended."""
    check, verify = ProducerStates.check, TransactionCoordinator.verify_for_produce

    def accept(self: ProducerStates, *arguments: Any, **options: Any) -> Any:
        found = check(self, *arguments, **options)
        return ErrorCode.NONE if found is ErrorCode.INVALID_PRODUCER_EPOCH else found

    def verified(self: TransactionCoordinator, *arguments: Any) -> ErrorCode:
        found = verify(self, *arguments)
        return ErrorCode.NONE if found is ErrorCode.INVALID_PRODUCER_EPOCH else found

    with (
        mock.patch.object(ProducerStates, "check", accept),
        mock.patch.object(TransactionCoordinator, "verify_for_produce", verified),
    ):
        yield


@contextmanager
def acquired_twice() -> Iterator[None]:
    """A record that a member of a share group has acquired is available to others."""

    def is_available(self: Delivery) -> bool:
        return self.state in (RecordState.AVAILABLE, RecordState.ACQUIRED) and not self.is_changing

    with mock.patch.object(Delivery, "is_available", property(is_available)):
        yield


BUGS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "old-generation-commits": old_generation_commits,
    "marker-lost-at-crash": marker_lost_at_crash,
    "assigned-before-revoked": assigned_before_revoked,
    "assigned-before-released": assigned_before_released,
    "task-given-before-released": task_given_before_released,
    "fenced-producer-appends": fenced_producer_appends,
    "acquired-twice": acquired_twice,
}
"""By name; each is a context manager in which the broker has the bug."""
