"""Take a snapshot of a broker's state, and restore it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto_server.snapshots.groups import Groups
from kproto_server.snapshots.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kproto_server.state import BrokerState


class BrokerSnapshot:
    """The state of a broker at a moment. It never changes, and stays when the broker ends."""

    def __init__(
        self, kafka_version: str, now_ms: int, running: frozenset[int], topics: Topics, groups: Groups
    ) -> None:
        self.kafka_version: str = kafka_version
        """The Kafka version of the broker."""
        self.now_ms: int = now_ms
        """The broker's time at that moment."""
        self.running: frozenset[int] = running
        """The nodes that ran."""
        self._topics = topics
        self._groups = groups

    def __repr__(self) -> str:
        topics, records = self._topics.counts()
        name = f"Kafka {self.kafka_version} at {self.now_ms} ms"
        return f"<snapshot of {name}: topics: {topics}, records: {records}, groups: {self._groups.group_count}>"

    def check(self, state: BrokerState) -> None:
        """Refuse a broker that can't have this state.

        Raises:
            UsageError: it has another Kafka version, or other nodes.
        """
        if state.kafka_version.name != self.kafka_version:
            own = state.kafka_version.name
            raise UsageError(f"the snapshot is one of Kafka version {self.kafka_version}, this broker's is {own}")
        nodes = set(state.cluster.nodes)
        if nodes != self._topics.nodes:
            raise UsageError(f"the snapshot has nodes {_listed(self._topics.nodes)}, this broker has {_listed(nodes)}")

    def restore(self, state: BrokerState, drain: Callable[[], object]) -> None:
        """Write this state to the logs of a broker that was reset; `finish` follows when all nodes run that did.

        ``drain``: has the logs settle everything that was appended.

        Raises:
            LogError: a log does not take it.
        """
        self._topics.restore(state, drain)
        self._groups.restore(state, self.now_ms, drain)

    def finish(self, state: BrokerState) -> None:
        """Delete the records before the start of each log, and give partitions their leaders and in-sync replicas.

        Raises:
            LogError: the log start offsets can't be saved.
        """
        self._topics.finish(state)


def take(state: BrokerState, running: Collection[int]) -> BrokerSnapshot:
    """Return a snapshot of a state of which the log has settled everything. ``running``: the nodes that run.

    Raises:
        UsageError: the data directory is still being loaded.
    """
    transactions, share_groups = state.used_transactions, state.used_share_groups
    for what, unavailable in (
        ("groups", state.coordinator.unavailable),
        ("transactions", {} if transactions is None else transactions.log.unavailable),
        ("share groups", {} if share_groups is None else share_groups.store.unavailable),
    ):
        if ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in unavailable.values():
            raise UsageError(f"{what} are still being loaded: take the snapshot later")
    now_ms = state.clock.now_ms()
    return BrokerSnapshot(
        state.kafka_version.name, now_ms, frozenset(running), Topics.of(state), Groups.of(state, now_ms)
    )


def _listed(node_ids: Collection[int]) -> str:
    return ", ".join(map(str, sorted(node_ids)))
