"""The state of a streams group, as values that never change: each change makes new ones."""

from __future__ import annotations

import enum
from dataclasses import KW_ONLY, dataclass, field
from dataclasses import replace as replace
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.epoch_groups.requests import JOIN_EPOCH
from kproto_server.coordinator.groups import Member

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kproto.records.streams_group_records import StreamsGroupTopologyValue

Tasks = dict[str, frozenset[int]]
"""Partitions by subtopology id, without empty sets. Never changed in place."""

NONE: Tasks = {}
NO_PARTITIONS: frozenset[int] = frozenset()
NO_EPOCH = -1


class TaskSets(NamedTuple):
    """Tasks by their roles."""

    active: Tasks = NONE
    standby: Tasks = NONE
    warmup: Tasks = NONE

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def has_any_of(self, other: TaskSets) -> bool:
        """Return whether some task is in both, in the same role."""
        return any(
            not indexes.isdisjoint(ours.get(subtopology_id, NO_PARTITIONS))
            for ours, theirs in zip(self, other, strict=True)
            for subtopology_id, indexes in theirs.items()
        )

    def with_all_of(self, other: TaskSets) -> TaskSets:
        """Return the tasks of both."""
        return TaskSets(*[merged(ours, theirs) for ours, theirs in zip(self, other, strict=True)])

    def contains(self, other: TaskSets) -> bool:
        """Return whether all tasks of the other are here, too."""
        return all(
            subtopology_id in ours and ours[subtopology_id].issuperset(indexes)
            for ours, theirs in zip(self, other, strict=True)
            for subtopology_id, indexes in theirs.items()
        )


NO_TASKS = TaskSets()


def merged(first: Tasks, second: Tasks) -> Tasks:
    """Return the union of tasks."""
    if not second:
        return first
    found = dict(first)
    for subtopology_id, indexes in second.items():
        found[subtopology_id] = found.get(subtopology_id, NO_PARTITIONS) | indexes
    return found


def task_ids(tasks: Tasks) -> Iterable[tuple[str, int]]:
    """Yield tasks one by one."""
    return ((subtopology_id, index) for subtopology_id, indexes in tasks.items() for index in indexes)


def as_tasks(tasks: Iterable[tuple[str, int]]) -> Tasks:
    """Return tasks by their subtopologies."""
    found: dict[str, set[int]] = {}
    for subtopology_id, index in sorted(tasks):
        found.setdefault(subtopology_id, set()).add(index)
    return {subtopology_id: frozenset(indexes) for subtopology_id, indexes in found.items()}


class MemberState(enum.IntEnum):
    """How far a member is on its way to the target assignment; the number is the one in the log."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    """The member has to revoke tasks first."""
    UNRELEASED_TASKS = 3
    """Other members still have tasks of its target."""
    UNKNOWN = 127


class Endpoint(NamedTuple):
    """The address of a member for interactive queries."""

    host: str
    port: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class StreamsMember(Member):
    """A member of a streams group."""

    _: KW_ONLY
    rebalance_timeout_ms: int = -1
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    speaks_classic: bool = False
    rack_id: str | None = None
    topology_epoch: int = NO_EPOCH
    process_id: str = ""
    """The members of one process have the same id, and one state directory."""
    endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: TaskSets = NO_TASKS
    """What the member has, or receives with the response to its heartbeat."""
    revoking: TaskSets = NO_TASKS
    """What the member still has and has to revoke."""
    task_epochs: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Since which epoch the member has each active task of both."""

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch


class StreamsData(NamedTuple):
    """All of a streams group that its log has."""

    epoch: int = 0
    metadata_hash: int = 0
    """A hash of the topics of the topology (`subscribed_topics.metadata_hash`); 0: there are none."""
    validated_topology_epoch: int = NO_EPOCH
    """The epoch of the topology whose topics all exist; `NO_EPOCH` while some don't."""
    assignment_configs: Mapping[str, str] = {}
    """The configs of the assignor for which the group epoch was raised last."""
    topology: StreamsGroupTopologyValue | None = None
    members: Mapping[str, StreamsMember] = {}
    """Members by id, in the order in which they joined."""
    assignment_epoch: int = 0
    """The group epoch for which the targets were computed."""
    targets: Mapping[str, TaskSets] = {}
    """The target assignment, by member id."""
    assignment_timestamp_ms: int = 0
    """When the targets were computed."""


NO_DATA = StreamsData()


def with_member(members: Mapping[str, StreamsMember], member: StreamsMember) -> dict[str, StreamsMember]:
    """Return a copy with a member added or replaced."""
    return {**members, member.member_id: member}


def metadata_of(member: StreamsMember) -> tuple[object, ...]:
    """Return what the member's metadata record has."""
    return (
        *group_metadata_of(member),
        member.group_instance_id,
        member.rebalance_timeout_ms,
        member.endpoint,
        member.client_id,
        member.client_host,
    )


def group_metadata_of(member: StreamsMember) -> tuple[object, ...]:
    """Return what raises the group epoch when a static member changes it."""
    return member.topology_epoch, member.rack_id, member.client_tags, member.process_id


def source_topics_of(topology: StreamsGroupTopologyValue | None) -> frozenset[str]:
    """Return the topics that a topology reads."""
    found: set[str] = set()
    for subtopology in () if topology is None else topology.subtopologies:
        found.update(subtopology.source_topics)
        found.update([topic.name for topic in subtopology.repartition_source_topics])
    return frozenset(found)


def topics_of(topology: StreamsGroupTopologyValue) -> frozenset[str]:
    """Return the topics that a topology reads and those of its stores."""
    changelogs = [topic.name for one in topology.subtopologies for topic in one.state_changelog_topics]
    return source_topics_of(topology).union(changelogs)
