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
from kproto_server.log_manager.log_manager import LogManager

if TYPE_CHECKING:
    from kproto.codes import ErrorCode
    from kproto_server.client_metrics.subscriptions import ClientMetrics
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.share_groups.share_groups import ShareGroups
    from kproto_server.transactions.coordinator import TransactionCoordinator


class BrokerState:
    """The parts of one broker process. Handlers get them through their `RequestContext`."""

    __slots__ = (
        "_client_metrics", "_share_groups", "_transactions", "clock", "cluster", "coordinator", "kafka_version",
        "log_manager", "settings",
    )  # fmt: skip

    def __init__(
        self, kafka_version: KafkaVersion, settings: Settings, cluster: Cluster, clock: Clock | None = None
    ) -> None:
        """``clock``: runs the coordinator's timers; None: a clock that stands still."""
        self.clock: Clock = clock or Clock(0.0, 0.0, ClockMode(rate=0.0))
        self.kafka_version: KafkaVersion = kafka_version
        self.cluster: Cluster = cluster
        self.settings: DynamicSettings = DynamicSettings(settings, cluster.changed)
        if settings.str("authorizer.class.name"):
            from kproto_server.configuration.authorizers import authorizer_of  # few brokers have ACLs

            cluster.authorizer = authorizer_of(settings.str)
        secret_key = settings.str("delegation.token.secret.key") or settings.str("delegation.token.master.key")
        if secret_key:
            from kproto_server.security.delegation_tokens import DelegationTokens  # few brokers have them

            cluster.delegation_tokens = DelegationTokens(secret_key, cluster.random_bytes)
        self.coordinator: GroupCoordinator = GroupCoordinator(
            kafka_version.behavior(CoordinatorBehavior), self.settings, cluster.topics, self.clock, cluster.random_bytes
        )
        self.coordinator.topics_version = lambda: cluster.version
        self.coordinator.created_version = lambda: cluster.created_version
        self.coordinator.rack_of = cluster.rack_of
        self.log_manager: LogManager = LogManager(cluster.topics, self.settings, cluster.random_bytes)
        self.log_manager.verify_transaction = self._verify_transaction
        self._transactions: TransactionCoordinator | None = None
        self._share_groups: ShareGroups | None = None
        self._client_metrics: ClientMetrics | None = None
        self.coordinator.begin_share_groups_load = lambda: self.share_groups.begin_load()

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator, made at its first use: to import it takes 3 % of a start."""
        if self._transactions is None:
            from kproto_server.transactions.coordinator import TransactionCoordinator
            from kproto_server.transactions.version_behavior import TransactionBehavior

            behavior = self.kafka_version.behavior(TransactionBehavior)
            self._transactions = TransactionCoordinator(
                behavior, self.settings, self.cluster, self.coordinator, self.log_manager
            )
        return self._transactions

    @property
    def used_transactions(self) -> TransactionCoordinator | None:
        """The transaction coordinator if it was used, for tasks that have nothing to do otherwise."""
        return self._transactions

    @property
    def share_groups(self) -> ShareGroups:
        """The share groups, made at their first use."""
        if self._share_groups is None:
            from kproto_server.share_groups.share_groups import ShareGroups
            from kproto_server.share_groups.version_behavior import ShareBehavior

            behavior = self.kafka_version.behavior(ShareBehavior)
            self._share_groups = ShareGroups(behavior, self.settings, self.cluster, self.coordinator, self.log_manager)
        return self._share_groups

    @property
    def used_share_groups(self) -> ShareGroups | None:
        """The share groups if they were used."""
        return self._share_groups

    @property
    def client_metrics(self) -> ClientMetrics:
        """The subscriptions of clients to metrics, made at their first use."""
        if self._client_metrics is None:
            from kproto_server.client_metrics.subscriptions import ClientMetrics

            self._client_metrics = ClientMetrics(self.kafka_version, self.settings, self.cluster.random_bytes)
        return self._client_metrics

    @property
    def used_client_metrics(self) -> ClientMetrics | None:
        """The subscriptions of clients to metrics if they were used."""
        return self._client_metrics

    def _verify_transaction(
        self,
        transactional_id: str | None,
        producer_id: int,
        producer_epoch: int,
        topic: str,
        partition: int,
        api_version: int,
    ) -> ErrorCode:
        return self.transactions.verify_for_produce(
            transactional_id, producer_id, producer_epoch, topic, partition, api_version
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
        if self._transactions is not None:
            self._transactions.forget()
        if self._share_groups is not None:
            self._share_groups.forget()
        if self._client_metrics is not None:
            self._client_metrics.forget()
        self.log_manager.reset()
