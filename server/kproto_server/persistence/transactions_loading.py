"""Loading of transactional ids from the logs of `__transaction_state`, in slices between iterations of the loop.

It begins when the offsets are loaded: the transactions that are finished then have pending offsets. A partition that is
not loaded returns COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.persistence.offsets_loading import slices
from kproto_server.transactions.loading import TransactionLoad

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.persistence.worker_thread import Post
    from kproto_server.storage.disk import Disk
    from kproto_server.storage.partition_log import PartitionLog
    from kproto_server.transactions.coordinator import TransactionCoordinator

logger = logging.getLogger("kproto.log")


class TransactionsLoading:
    """Loads all partitions of `__transaction_state` whose logs are not empty."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        now_ms: Callable[[], int],
        post: Post,
        disk: Disk,
        logs: dict[int, PartitionLog],
        on_loaded: Callable[[], object],
    ) -> None:
        """``on_loaded``: called in the event loop when all partitions are loaded."""
        self._coordinator = coordinator
        self._now_ms = now_ms
        self._post = post
        self._on_loaded = on_loaded
        self._loads = [(number, TransactionLoad(slices(disk, log))) for number, log in sorted(logs.items()) if log.size]
        for number, _ in self._loads:
            coordinator.unavailable[number] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def start(self) -> None:
        """Load in the event loop, a step in each iteration."""
        self._post(self._turn)

    def _turn(self) -> None:
        if not self._loads:
            self._coordinator.finish(self._now_ms())
            self._on_loaded()
            return
        number, load = self._loads[0]
        if load.step():
            self._loads.pop(0)
            if load.failed is not None:
                self._coordinator.unavailable[number] = ErrorCode.NOT_COORDINATOR
                logger.error("partition %d of __transaction_state can't be served: %s", number, load.failed)
            else:
                self._coordinator.unavailable.pop(number, None)
                self._coordinator.loaded(load.transactions())
        self._post(self._turn)
