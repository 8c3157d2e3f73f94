"""A registered streams group: its data, and what follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from kproto_server.coordinator.epoch_groups.group import EpochGroup
from kproto_server.coordinator.epoch_groups.records import changed_members
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.streams_groups.data import StreamsData, source_topics_of, task_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto.messages.k28_txn_offset_commit import TxnOffsetCommitRequest
    from kproto_server.clock import Timer
    from kproto_server.cluster.topics import Topic
    from kproto_server.coordinator.change_log import Batch
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Member
    from kproto_server.coordinator.streams_groups.data import StreamsMember
    from kproto_server.coordinator.streams_groups.topology import ConfiguredTopology
    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior

    Task = tuple[str, int]
    """Subtopology id and partition."""

PROTOCOL_TYPE = "streams"


class TaskOffsets(NamedTuple):
    """What a member has reported of its state stores, by task."""

    offsets: Mapping[Task, int] = {}
    end_offsets: Mapping[Task, int] = {}


NO_OFFSETS = TaskOffsets()


class StreamsGroup(EpochGroup[StreamsData]):
    """A group of KIP-1071. The fields that are not in `data` are not in the log: after a restart they are as in a new
    group."""

    __slots__ = (
        "active_processes",
        "configured",
        "creation_problems",
        "delay_timer",
        "endpoint_epoch",
        "shutdown_member_id",
        "standby_processes",
        "task_offsets",
        "warmup_processes",
    )

    def __init__(self, group_id: str, now_ms: int, data: StreamsData) -> None:
        """``data``: what a new group has, of which nothing is in the log."""
        super().__init__(group_id, now_ms, "streams", data)
        self.protocol_type: str | None = PROTOCOL_TYPE
        self.subscribed_topics = frozenset()
        self.configured: ConfiguredTopology | None = None
        """The topology, configured with the existing topics."""
        self.creation_problems: dict[str, tuple[str, int]] = {}
        """Why internal topics could not be created, and until when heartbeats say so, by name."""
        self.delay_timer: Timer | None = None
        """The initial rebalance delay, until it is over."""
        self.endpoint_epoch: int = 0
        """Rises when the endpoints of members or the tasks of these members change."""
        self.shutdown_member_id: str | None = None
        """The member that wants the application to shut down."""
        self.task_offsets: dict[str, TaskOffsets] = {}
        """The offsets of state stores that members have reported, by member id."""
        self.active_processes: dict[Task, str] = {}
        """The process that has an active task or still has to revoke it, by task."""
        self.standby_processes: dict[Task, set[str]] = {}
        self.warmup_processes: dict[Task, set[str]] = {}

    def forget(self) -> None:
        """Drop what the log does not have, as Kafka does with that of a group's first heartbeat."""
        self.configured = self.shutdown_member_id = None
        self.endpoint_epoch = 0
        self.topics_version: int = -1
        self.task_offsets.clear()

    @staticmethod
    def new_data(first_epoch: int) -> StreamsData:
        return StreamsData(epoch=first_epoch, assignment_epoch=first_epoch)

    def apply(self, data: StreamsData, now_ms: int) -> None:
        """Replace the data, and all that follows from them."""
        before = self.data.members
        self.data: StreamsData = data
        members = data.members
        changed = changed_members(before, members)
        for member_id, old in before.items():
            if members.get(member_id) is not old:
                self._release(old)
            if member_id not in members:
                self.task_offsets.pop(member_id, None)
        for _, member, _ in changed:
            self._own(member)
        self.members: dict[str, Member] = cast("dict[str, Member]", members)
        self.generation: int = data.epoch
        if not members:
            self.shutdown_member_id = None
        topics = source_topics_of(data.topology) if members else frozenset()
        if topics != self.subscribed_topics:
            self.subscribed_topics = topics
        state = _state_of(data)
        if state is not self.state:
            self.transition_to(state, now_ms)

    def _release(self, member: StreamsMember) -> None:
        for tasks in (member.assigned, member.revoking):
            for task in task_ids(tasks.active):
                if self.active_processes.get(task) == member.process_id:
                    del self.active_processes[task]
            for task in task_ids(tasks.standby):
                self.standby_processes.get(task, set()).discard(member.process_id)
            for task in task_ids(tasks.warmup):
                self.warmup_processes.get(task, set()).discard(member.process_id)
        self._drop_instance(member.group_instance_id, member.member_id)

    def _own(self, member: StreamsMember) -> None:
        for tasks in (member.assigned, member.revoking):
            for task in task_ids(tasks.active):
                self.active_processes[task] = member.process_id
            for task in task_ids(tasks.standby):
                self.standby_processes.setdefault(task, set()).add(member.process_id)
            for task in task_ids(tasks.warmup):
                self.warmup_processes.setdefault(task, set()).add(member.process_id)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

    def change_batch(
        self,
        coordinator: GroupCoordinator,
        before: StreamsData,
        after: StreamsData,
        now_ms: int,
        *,
        removes_classic: bool = False,
    ) -> Batch:
        from kproto_server.coordinator.epoch_groups.batches import change_batch
        from kproto_server.coordinator.streams_groups.records import changes

        pairs = changes(coordinator.behavior, self.group_id, before, after)
        return change_batch(coordinator, self.group_id, pairs, now_ms, removes_classic=removes_classic)

    def record_keys(self, behavior: OffsetsLogBehavior) -> list[bytes]:
        from kproto.records.coordinator import encode_key
        from kproto_server.coordinator.streams_groups.records import tombstones

        return [encode_key(key) for key, _ in tombstones(self.group_id, self.data)]

    def had_partitions(
        self, request: OffsetCommitRequest | TxnOffsetCommitRequest, topics: Mapping[str, Topic]
    ) -> bool:
        from kproto_server.coordinator.streams_groups.commits import had_partitions

        member = self.data.members[request.member_id]
        return had_partitions(self.data.topology, member, request, topics)


def _state_of(data: StreamsData) -> GroupState:
    if not data.members:
        return GroupState.EMPTY
    if data.topology is None or data.topology.epoch != data.validated_topology_epoch:
        return GroupState.NOT_READY
    if data.epoch > data.assignment_epoch:
        return GroupState.ASSIGNING
    if all(member.is_reconciled_to(data.assignment_epoch) for member in data.members.values()):
        return GroupState.STABLE
    return GroupState.RECONCILING
