"""Loading of transactional ids from the logs of `__transaction_state`.

It begins when the offsets are loaded: the transactions that are finished then have pending offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.persistence.loading import Loading
from kproto_server.transactions.loading import TransactionLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto_server.persistence.loading import Surroundings
    from kproto_server.storage.partition_log import PartitionLog
    from kproto_server.transactions.coordinator import TransactionCoordinator


class TransactionsLoading(Loading[TransactionLoad]):
    """Loads all partitions of `__transaction_state` whose logs are not empty."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        now_ms: Callable[[], int],
        surroundings: Surroundings,
        logs: dict[int, PartitionLog],
        on_loaded: Callable[[], object],
    ) -> None:
        """``on_loaded``: called in the event loop when all partitions are loaded."""

        def finish() -> None:
            coordinator.ending.finish(now_ms())
            on_loaded()

        super().__init__(surroundings, logs, coordinator.log.unavailable, finish, " of __transaction_state")
        self._coordinator = coordinator

    def _load(self, number: int, content: Iterator[bytes]) -> TransactionLoad:
        return TransactionLoad(content)

    def _take(self, number: int, load: TransactionLoad) -> None:
        self._coordinator.loaded(load.transactions())
