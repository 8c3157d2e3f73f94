"""The periodic tasks of the transaction coordinator, by the broker's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.clock import PeriodicTask

if TYPE_CHECKING:
    from kproto_server.clock import Clock
    from kproto_server.transactions.coordinator import TransactionCoordinator


def transaction_tasks(coordinator: TransactionCoordinator, clock: Clock) -> tuple[PeriodicTask, PeriodicTask]:
    """Return the tasks that abort timed-out transactions (BA-106), and that remove unused transactional ids."""
    settings = coordinator.settings.current
    timeouts_ms = settings.int("transaction.abort.timed.out.transaction.cleanup.interval.ms")
    expiration_ms = settings.int("transaction.remove.expired.transaction.cleanup.interval.ms")
    return (
        PeriodicTask(clock, timeouts_ms, coordinator.abort_timed_out),
        PeriodicTask(clock, expiration_ms, coordinator.remove_expired),
    )
