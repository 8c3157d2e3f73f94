"""The group coordinator of all nodes: groups, offsets, and the log of their changes.

All nodes of one process share it, as the brokers of a real cluster replicate the offsets topic; the leader of a group's
offsets partition coordinates the group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kproto.codes import ErrorCode
from kproto.jvm.uuid_text import uuid_text
from kproto.records.partitioning import OFFSETS_TOPIC, partition_for
from kproto_server.coordinator.change_log import MemoryChangeLog
from kproto_server.coordinator.offsets import OffsetStore
from kproto_server.coordinator.registry import GroupRegistry, as_group, simple_group
from kproto_server.log_manager.in_sync_replicas import has_too_few_in_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kproto.records.coordinator import CoordinatorRecord
    from kproto_server.clock import Clock
    from kproto_server.cluster.cluster import Node
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.coordinator.change_log import Change, ChangeLog
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.membership.phases import Hold
    from kproto_server.coordinator.pending_offsets import PendingOffsets
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

V0_PARTITION = -1
"""Stands for the log of the offsets of OffsetCommit v0, which is no partition of the offsets topic (OC-20)."""

UUID_BYTES = 16


class ShareGroupsLoad(Protocol):
    """Share groups from their records: collected while a log is read, created at its end."""

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply the next record."""
        ...

    def finish(self, now_ms: int) -> None:
        """Create the groups, and begin the sessions of their members."""
        ...


class GroupCoordinator:
    """Groups, offsets, and the log of their changes."""

    def __init__(
        self,
        behavior: CoordinatorBehavior,
        settings: DynamicSettings,
        topics: Mapping[str, Topic],
        clock: Clock,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """``topics``: those of the cluster, by name; ``random_bytes``: makes member ids."""
        self.behavior: CoordinatorBehavior = behavior
        self.settings: DynamicSettings = settings
        self.clock: Clock = clock
        self.topics: Mapping[str, Topic] = topics
        self._random_bytes = random_bytes
        self.groups: GroupRegistry = GroupRegistry()
        self.holds: dict[str, Hold] = {}
        """The groups whose rebalances a test holds, by id."""
        self.offsets: OffsetStore = OffsetStore()
        self.log: ChangeLog = MemoryChangeLog()
        """Has each change of groups and offsets before it is visible."""
        self.topics_version: Callable[[], int] = lambda: 0
        """Returns a number that rises with each change of topics and nodes."""
        self.created_version: Callable[[], int] = lambda: 0
        """Returns what `topics_version` was when the last topic was created."""
        self.rack_of: Callable[[int], str | None] = lambda node_id: None
        """Returns the rack of a node."""
        self.unavailable: dict[int, int] = {}
        """Offsets partitions that are not served, with the error of their groups: COORDINATOR_LOAD_IN_PROGRESS while
        they are loaded, NOT_COORDINATOR if they can't be."""
        self.pending_offsets: dict[int, PendingOffsets] = {}
        """The offsets of transactions that are open at the end of a loaded log, by offsets partition (LF-33)."""
        self.v0_offsets: OffsetStore = OffsetStore()
        """The offsets of OffsetCommit v0, which real brokers keep in ZooKeeper (OC-20)."""
        self.begin_share_groups_load: Callable[[], ShareGroupsLoad]
        """Begins the load of share groups; set by the owner of both."""
        self.prepare_v0_log: Callable[[], int] = lambda: 0
        """Create the log of those offsets if one is needed; return an error code if that failed, else 0."""

    @property
    def offsets_partitions(self) -> Sequence[Partition]:
        """The partitions of the offsets topic; none while there is no such topic."""
        topic = self.topics.get(OFFSETS_TOPIC)
        return () if topic is None else topic.partitions

    def partition_of(self, group_id: str) -> int | None:
        """Return the offsets partition of a group; None while there is no offsets topic."""
        topic = self.topics.get(OFFSETS_TOPIC)
        return None if topic is None else partition_for(group_id, len(topic.partitions))

    def pending_offsets_of(self, group_id: str) -> PendingOffsets | None:
        """Return the pending offsets of the partition of a group; None if it has had none."""
        partition = self.partition_of(group_id)
        return None if partition is None else self.pending_offsets.get(partition)

    def owned_partition(self, node: Node, group_id: str) -> int | None:
        """Return the offsets partition of a group if ``node`` leads it.

        None means NOT_COORDINATOR: another node leads it, none does, or there is no offsets topic yet (OC-10 row 12).
        """
        topic = self.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return None
        partitions = topic.partitions
        index = partition_for(group_id, len(partitions))
        return index if partitions[index].leader == node.node_id else None

    def partitions_led_by(self, node_id: int) -> set[int]:
        """Return the offsets partitions that a node leads."""
        return {one.index for one in self.offsets_partitions if one.leader == node_id}

    def error_at(self, node: Node, group_id: str) -> int:
        """Return why a node does not serve a group: NOT_COORDINATOR, or the error of a partition that is not loaded or
        can't be read (LF-30, LF-36); 0 if it serves the group."""
        partition = self.owned_partition(node, group_id)
        return ErrorCode.NOT_COORDINATOR if partition is None else self.unavailable.get(partition, 0)

    @property
    def not_coordinator_error(self) -> int:
        """The error of a request to a node that does not own the group's partition (OC-10 row 12)."""
        return ErrorCode.NOT_COORDINATOR if OFFSETS_TOPIC in self.topics else self.behavior.no_offsets_topic_error

    def group(self, group_id: str) -> Group | None:
        """Return a group. A group that exists by its offsets alone is made for each call, and not registered."""
        group = self.groups.get(group_id)
        if group is None and self.behavior.offsets_create_group and self.offsets.has(group_id):
            return simple_group(group_id)
        return group

    def group_list(self) -> list[str | Group]:
        """Return all groups, first the ids of those that exist by their offsets alone."""
        ids: list[str] = []
        if self.behavior.offsets_create_group:
            known = self.groups.get
            ids = sorted([group_id for group_id in self.offsets.group_ids() if known(group_id) is None])
        return [*ids, *self.groups]

    def all_groups(self) -> Iterator[Group]:
        """Yield all groups, first those that exist by their offsets alone."""
        return map(as_group, self.group_list())

    def new_member_id(self, name: str) -> str:
        """Return a member id that begins with the client's id or the instance's: a random UUID follows (GP-14)."""
        uuid = bytearray(self._random_bytes(UUID_BYTES))
        uuid[6] = uuid[6] & 0x0F | 0x40  # version 4 of RFC 4122
        uuid[8] = uuid[8] & 0x3F | 0x80
        digits = uuid.hex()
        return f"{name}-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def new_uuid(self) -> str:
        """Return a random UUID as Kafka writes those of its own."""
        return uuid_text(self._random_bytes(UUID_BYTES))

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        """Append a change to the log of an offsets partition, unless the partition has too few in-sync replicas.

        The new coordinator does not check that before it appends: its wait for the replicas times out.
        """
        topic = self.topics.get(OFFSETS_TOPIC)
        if topic is not None and has_too_few_in_sync(self.settings.current, topic, topic.partitions[partition]):
            is_new = self.behavior.is_new_coordinator
            change.settle(ErrorCode.REQUEST_TIMED_OUT if is_new else ErrorCode.NOT_ENOUGH_REPLICAS)
        else:
            self.log.append(partition, change, batch, record_count)

    def forget_groups(self) -> None:
        """Drop all groups, which have ended (`membership.unloading`), and their offsets."""
        self.log = self.log.without_topic()
        self.groups = GroupRegistry()
        self.offsets = OffsetStore()
        self.pending_offsets = {}

    def reset(self) -> None:
        """Drop all groups and offsets, those of OffsetCommit v0 too; a log on disk stays the log."""
        self.forget_groups()
        self.holds.clear()
        self.unavailable.clear()
        self.v0_offsets = OffsetStore()
