"""Everything that a broker process knows, in one place with one owner (D8): no locks, no copies.

All the nodes of ``--brokers N`` share it, as the brokers of a real cluster share their metadata log and replicate
their offsets; what a node may answer for is decided by who leads which partition.
"""

from __future__ import annotations

from functools import partial
from random import randrange
from typing import TYPE_CHECKING

from kproto_server.clock import Clock, ClockMode
from kproto_server.cluster.cluster import Cluster
from kproto_server.cluster.topics import OFFSETS_TOPIC
from kproto_server.configuration.settings import first_dynamic_configs
from kproto_server.coordinator.change_log import MemoryChangeLog
from kproto_server.coordinator.offsets import OffsetStore
from kproto_server.coordinator.registry import GroupRegistry, simple_group
from kproto_server.partition_log.fetch_sessions import FetchSessions
from kproto_server.partition_log.retention import MemoryBound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.configuration.settings import Settings
    from kproto_server.coordinator.change_log import ChangeLog
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.pending_offsets import PendingOffsets
    from kproto_server.partition_log.partition_data import PartitionData
    from kproto_server.releases.kafka_version import KafkaVersion


class BrokerState:
    """The Kafka version and settings a broker was started with, and all that clients have made since."""

    def __init__(
        self, kafka_version: KafkaVersion, settings: Settings, cluster: Cluster, clock: Clock | None = None
    ) -> None:
        """``clock``: what timers go by; None: one that stands, for whoever sets none."""
        self.clock = clock or Clock(0.0, 0.0, ClockMode(rate=0.0))
        self.kafka_version = kafka_version
        self.settings = settings
        """Of all nodes, as they are now: some can be changed while brokers run (`change_settings`)."""
        self.dynamic_configs: dict[str, dict[str, str]] = {"": first_dynamic_configs(kafka_version)}
        """What was changed, by node id; "" is all nodes (KIP-226)."""
        self._settings_of: dict[int, Settings] = {}
        self.cluster = cluster
        self.groups = GroupRegistry()
        self.offsets = OffsetStore()
        self.log: ChangeLog = MemoryChangeLog()
        """Where changes of groups and offsets are kept before they are visible."""
        self.unavailable: dict[int, int] = {}
        """Offsets partitions that can't be spoken for, and the error to say so: 14 while they are loaded, 16 if they
        can't be."""
        self.pending_offsets: dict[int, PendingOffsets] = {}
        """Offsets of transactions that had not ended where their log did, by offsets partition (LF-33)."""
        self.make_data: Callable[[Topic, Partition], PartitionData] = lambda _, partition: partition.make_data()
        """Where records are kept: in memory, unless there is a data directory."""
        self.memory = MemoryBound(settings.int("records.memory.max.bytes"))
        self.directory: str | None = None
        """The data directory; None: there is none."""
        self.last_producer_id = 0
        self._fetch_sessions: dict[int, FetchSessions] = {}
        self.v0_offsets = OffsetStore()
        """What OffsetCommit v0 wrote: the store that was ZooKeeper, apart from the rest (OC-20)."""
        self.prepare_v0_log: Callable[[], int] = lambda: 0
        """Makes the log of those offsets if there has to be one; returns Kafka's error if that failed."""

    def settings_of(self, node_id: int) -> Settings:
        """Return the settings of one node."""
        return self._settings_of.get(node_id, self.settings)

    def change_settings(self, name: str, configs: dict[str, str]) -> None:
        """Have these be all that was changed for a node, or for all, ""."""
        self.dynamic_configs[name] = configs
        of_all = self.dynamic_configs[""]
        self.settings = self.settings.with_dynamic(of_all)
        self._settings_of = {
            int(node): self.settings.with_dynamic(of_all, of_one)
            for node, of_one in self.dynamic_configs.items()
            if node and of_one
        }
        self.cluster.version += 1

    def new_producer_id(self) -> int:
        """Return an id that no producer has."""
        self.last_producer_id += 1
        return self.last_producer_id

    def topic_to_read(self, name: str) -> Topic | None:
        """Return a topic whose records are asked for; those of the offsets topic may have to be made first."""
        if name == OFFSETS_TOPIC and name in self.cluster.topics and not self.log.keeps:
            from kproto_server.coordinator.shown_log import show_offsets_topic

            show_offsets_topic(self)
        return self.cluster.topic(name)

    def fetch_sessions(self, node_id: int) -> FetchSessions:
        """Return what a broker remembers of those who fetch from it."""
        found = self._fetch_sessions.get(node_id)
        if found is None:
            slots = self.settings.int("max.incremental.fetch.session.cache.slots")
            found = self._fetch_sessions[node_id] = FetchSessions(slots, partial(randrange, 1, 2**31))
        return found

    def data_of(self, topic: Topic, partition: Partition) -> PartitionData:
        """Return what is in a partition, to be written to.

        Raises:
            OSError: there is no log for it, and none can be made.
        """
        return self.make_data(topic, partition)

    def wrote_to_memory(self, size: int) -> None:
        """Take note of records that were put into memory; the oldest go if it is too much."""
        if self.memory.wrote(size):
            partitions = (one for topic in self.cluster.topics.values() for one in topic.partitions)
            self.memory.keep(partition.data for partition in partitions)

    def group(self, group_id: str) -> Group | None:
        """Return a group; one that there is by its offsets alone is made for whoever asks, and not kept."""
        group = self.groups.get(group_id)
        if group is None and self.kafka_version.offsets_make_a_group and self.offsets.has(group_id):
            return simple_group(group_id)
        return group

    def all_groups(self) -> Iterator[Group]:
        """Yield all groups, first those that there are by their offsets alone. Nothing may be changed meanwhile."""
        if self.kafka_version.offsets_make_a_group:
            known = self.groups.get
            for group_id in sorted(self.offsets.group_ids()):
                if known(group_id) is None:
                    yield simple_group(group_id)
        yield from self.groups

    def notes(self) -> list[str]:
        """What a user should be told at start: settings that follow from others."""
        factor = self.cluster.defaults.offsets_replication_factor
        if len(self.cluster.nodes) == 1 and not self.settings.is_set("offsets.topic.replication.factor"):
            return [f"offsets.topic.replication.factor is {factor}, as this is the only broker (KIP-115: 3 elsewhere)"]
        return []

    def reset(self) -> None:
        """Forget topics, groups and offsets; nodes and their addresses stay."""
        from kproto_server.coordinator.membership.unloading import dissolve

        dissolve(self)
        if isinstance(self.log, MemoryChangeLog):
            self.log = MemoryChangeLog()
        self.cluster.reset()
        self.dynamic_configs.clear()
        self.change_settings("", first_dynamic_configs(self.kafka_version))
        self.groups = GroupRegistry()
        self.offsets = OffsetStore()
        self.v0_offsets = OffsetStore()
