"""Loading of the states of share partitions from the logs of `__share_group_state`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.persistence.loading import Loading
from kproto_server.share_groups.records import ShareStateLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto_server.persistence.loading import Surroundings
    from kproto_server.share_groups.state_store import ShareStateStore
    from kproto_server.storage.partition_log import PartitionLog


class ShareStatesLoading(Loading[ShareStateLoad]):
    """Loads all partitions of `__share_group_state` whose logs are not empty."""

    def __init__(
        self,
        store: ShareStateStore,
        surroundings: Surroundings,
        logs: dict[int, PartitionLog],
        on_loaded: Callable[[], object],
    ) -> None:
        """``on_loaded``: called in the event loop when all partitions are loaded."""
        super().__init__(surroundings, logs, store.unavailable, on_loaded, " of __share_group_state")
        self._store = store

    def _load(self, number: int, content: Iterator[bytes]) -> ShareStateLoad:
        return ShareStateLoad(content, self._store.updates_max)

    def _take(self, number: int, load: ShareStateLoad) -> None:
        self._store.loaded(load.states, load.snapshot_offsets)
