"""The periodic tasks of the transaction coordinator, by the broker's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.clock import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto_server.clock import Clock
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.transactions.coordinator import TransactionCoordinator


def transaction_tasks(
    find: Callable[[], TransactionCoordinator | None], settings: DynamicSettings, clock: Clock
) -> tuple[PeriodicTask, PeriodicTask]:
    """Return the tasks that abort timed-out transactions (BA-106), and that remove unused transactional ids.

    ``find``: returns None while no transactional id was used.
    """
    timeouts_ms = settings.current.int("transaction.abort.timed.out.transaction.cleanup.interval.ms")
    expiration_ms = settings.current.int("transaction.remove.expired.transaction.cleanup.interval.ms")

    def abort_timed_out(now_ms: int) -> Iterator[None] | None:
        coordinator = find()
        return None if coordinator is None else coordinator.abort_timed_out(now_ms)

    def remove_expired(now_ms: int) -> Iterator[None] | None:
        coordinator = find()
        return None if coordinator is None else coordinator.remove_expired(now_ms)

    return PeriodicTask(clock, timeouts_ms, abort_timed_out), PeriodicTask(clock, expiration_ms, remove_expired)
