"""Groups from their records (LF-35, EX-16, EX-52): collected while a log is read, created at its end.

The last record of a group decides its kind. `consumer_groups.loading` and
`streams_groups.loading` have the records of the groups of KIP-848 and KIP-1071.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue
from kproto_server.coordinator.groups import GroupState, Member
from kproto_server.coordinator.membership.protocols import subscribed_topics_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.records.coordinator import CoordinatorRecord
    from kproto.records.group_records import MemberMetadata
    from kproto_server.coordinator.consumer_groups.loading import RestoredConsumerGroup
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.registry import GroupRegistry
    from kproto_server.coordinator.streams_groups.loading import RestoredStreamsGroup
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

GROUP_TYPE = 2
CONSUMER_GROUP_TYPES = frozenset({3, 4, 5, 6, 7, 8, 16})
STREAMS_GROUP_TYPES = frozenset({17, 19, 20, 21, 22, 23})
NO_TIMESTAMP = -1
NEWEST_TIME_VERSION = 2
"""The newest version of GroupMetadataValue whose timestamp such a release reads."""


class RestoredGroups:
    """The groups of one offsets partition."""

    def __init__(self, behavior: CoordinatorBehavior) -> None:
        self._groups: dict[str, GroupMetadataValue | RestoredConsumerGroup | RestoredStreamsGroup] = {}
        self._behavior = behavior

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply the next record of a group; a record without a value is a tombstone."""
        key, value = record.key, record.value
        if isinstance(key, GroupMetadataKey):
            if isinstance(value, GroupMetadataValue):
                if self._behavior.loses_empty_since and record.value_version > NEWEST_TIME_VERSION:
                    value = value.replace(current_state_timestamp=NO_TIMESTAMP)
                self._groups[key.group] = value
            elif isinstance(self._groups.get(key.group), GroupMetadataValue):
                del self._groups[key.group]
        elif type(key)._record_type in STREAMS_GROUP_TYPES:
            from kproto_server.coordinator.streams_groups.loading import RestoredStreamsGroup

            self._replay_epoch_group(record, RestoredStreamsGroup)
        else:
            from kproto_server.coordinator.consumer_groups.loading import RestoredConsumerGroup

            self._replay_epoch_group(record, RestoredConsumerGroup)

    def _replay_epoch_group(
        self, record: CoordinatorRecord, kind: type[RestoredConsumerGroup] | type[RestoredStreamsGroup]
    ) -> None:
        group_id: str = record.key[0]  # type: ignore[index]  # a struct is a tuple, and each key begins with the group
        group = self._groups.get(group_id)
        if not isinstance(group, kind):
            if record.value is None:
                return
            group = self._groups[group_id] = kind()
        group.replay(record)
        if group.is_deleted:
            del self._groups[group_id]

    def make(self, groups: GroupRegistry, now_ms: int) -> Iterator[Group]:
        """Create the groups in a registry, one by one."""
        for group_id, restored in self._groups.items():
            if isinstance(restored, GroupMetadataValue):
                group = groups.create(group_id, now_ms)
                _fill_classic_group(group, restored)
            else:
                group = restored.make(group_id, now_ms, self._behavior.first_group_epoch)
                groups.add(group)
            yield group


def _fill_classic_group(group: Group, value: GroupMetadataValue) -> None:
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.generation = value.generation
    for member in value.members:
        group.add_member(_classic_member(member, value.protocol))
    group.leader_id = value.leader
    timestamp_ms = value.current_state_timestamp
    group.state = GroupState.STABLE if value.members else GroupState.EMPTY
    group.state_timestamp_ms = None if timestamp_ms == NO_TIMESTAMP else timestamp_ms
    group.subscribed_topics = subscribed_topics_of(group)


def _classic_member(member: MemberMetadata, protocol: str | None) -> Member:
    return Member(
        member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout,
        rebalance_timeout_ms=member.effective_rebalance_timeout(),
        protocols=() if protocol is None else ((protocol, member.subscription),),
        metadata=member.subscription,
        assignment=member.assignment,
    )
