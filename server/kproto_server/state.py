"""The parts of one broker process, for the modules that assemble, serve and persist them.

All nodes of ``--brokers N`` share these parts, as the brokers of a real cluster share their metadata log and replicate
their offsets; the leaders of the partitions decide which node responds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.clock import Clock, ClockMode
from kproto_server.configuration.dynamic_settings import DynamicSettings
from kproto_server.coordinator.coordinator import GroupCoordinator
from kproto_server.coordinator.version_behavior import CoordinatorBehavior
from kproto_server.partition_log.log_manager import LogManager
from kproto_server.transactions.coordinator import TransactionCoordinator
from kproto_server.transactions.version_behavior import TransactionBehavior

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion


class BrokerState:
    """The parts of one broker process. Handlers get them one by one, in their `RequestContext`."""

    __slots__ = ("clock", "cluster", "coordinator", "kafka_version", "log_manager", "settings", "transactions")

    def __init__(
        self, kafka_version: KafkaVersion, settings: Settings, cluster: Cluster, clock: Clock | None = None
    ) -> None:
        """``clock``: runs the coordinator's timers; None: a clock that stands still."""
        self.clock: Clock = clock or Clock(0.0, 0.0, ClockMode(rate=0.0))
        self.kafka_version: KafkaVersion = kafka_version
        self.cluster: Cluster = cluster
        self.settings: DynamicSettings = DynamicSettings(settings, cluster.changed)
        self.coordinator: GroupCoordinator = GroupCoordinator(
            kafka_version.behavior(CoordinatorBehavior), self.settings, cluster.topics, self.clock, cluster.random_bytes
        )
        self.log_manager: LogManager = LogManager(cluster.topics, self.settings, cluster.random_bytes)
        self.transactions: TransactionCoordinator = TransactionCoordinator(
            kafka_version.behavior(TransactionBehavior), self.settings, cluster, self.coordinator, self.log_manager
        )

    def notes(self) -> list[str]:
        """Return the lines that a start prints about settings that follow from others."""
        factor = self.cluster.defaults.offsets_replication_factor
        if len(self.cluster.nodes) == 1 and not self.settings.current.is_set("offsets.topic.replication.factor"):
            return [f"offsets.topic.replication.factor is {factor}, as this is the only broker (KIP-115: 3 elsewhere)"]
        return []

    def reset(self) -> None:
        """Drop topics, groups, offsets, fetch sessions, producers and dynamic configs; nodes stay."""
        from kproto_server.coordinator.membership.unloading import unload_all

        unload_all(self.coordinator)
        self.cluster.reset()
        self.settings.reset()
        self.coordinator.reset()
        self.transactions.forget()
        self.log_manager.reset()
