"""Groups from their records (LF-35, EX-16, EX-52): collected while a log is read, created at its end.

The last record of a group decides its kind. Of a consumer group (KIP-848) the load keeps what expiration and
descriptions need: its members and their subscribed topics, including those that a regular expression was resolved to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records import consumer_group_records as consumer
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue
from kproto_server.coordinator.groups import NO_GENERATION, GroupState, Member
from kproto_server.coordinator.membership.protocols import subscribed_topics_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.records.coordinator import CoordinatorRecord
    from kproto.records.group_records import MemberMetadata
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.registry import GroupRegistry
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

GROUP_TYPE = 2
CONSUMER_GROUP_TYPES = frozenset({3, 4, 5, 6, 7, 8, 16})
NO_TIMESTAMP = -1
NEWEST_TIME_VERSION = 2
"""The newest version of GroupMetadataValue whose timestamp such a release reads."""


class ConsumerGroup:
    """The records of a consumer group so far."""

    def __init__(self) -> None:
        self.epoch = 0
        self.members: dict[str, consumer.ConsumerGroupMemberMetadataValue] = {}
        self.member_epochs: dict[str, int] = {}
        self.resolved: dict[str, tuple[str, ...]] = {}
        """Matching topics by regular expression."""

    def subscribed_topics(self) -> frozenset[str]:
        topics: set[str] = set()
        for member in self.members.values():
            topics.update(member.subscribed_topic_names)
            topics.update(self.resolved.get(member.subscribed_topic_regex or "", ()))
        return frozenset(topics)


class RestoredGroups:
    """The groups of one offsets partition."""

    def __init__(self, behavior: CoordinatorBehavior) -> None:
        self._groups: dict[str, GroupMetadataValue | ConsumerGroup] = {}
        self._forgets_times = behavior.loses_empty_since

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply the next record of a group; a record without a value is a tombstone."""
        key, value = record.key, record.value
        if isinstance(key, GroupMetadataKey):
            if isinstance(value, GroupMetadataValue):
                if self._forgets_times and record.value_version > NEWEST_TIME_VERSION:
                    value = value.replace(current_state_timestamp=NO_TIMESTAMP)
                self._groups[key.group] = value
            elif isinstance(self._groups.get(key.group), GroupMetadataValue):
                del self._groups[key.group]
        elif isinstance(key, consumer.ConsumerGroupMetadataKey):
            if isinstance(value, consumer.ConsumerGroupMetadataValue):
                self._consumer_group(key.group_id).epoch = value.epoch
            elif isinstance(self._groups.get(key.group_id), ConsumerGroup):
                del self._groups[key.group_id]
        elif isinstance(key, consumer.ConsumerGroupMemberMetadataKey):
            if isinstance(value, consumer.ConsumerGroupMemberMetadataValue):
                self._consumer_group(key.group_id).members[key.member_id] = value
            elif (group := self._known_consumer_group(key.group_id)) is not None:
                group.members.pop(key.member_id, None)
        elif isinstance(key, consumer.ConsumerGroupCurrentMemberAssignmentKey):
            if isinstance(value, consumer.ConsumerGroupCurrentMemberAssignmentValue):
                self._consumer_group(key.group_id).member_epochs[key.member_id] = value.member_epoch
            elif (group := self._known_consumer_group(key.group_id)) is not None:
                group.member_epochs.pop(key.member_id, None)
        elif isinstance(key, consumer.ConsumerGroupRegularExpressionKey):
            if isinstance(value, consumer.ConsumerGroupRegularExpressionValue):
                self._consumer_group(key.group_id).resolved[key.regular_expression] = value.topics
            elif (group := self._known_consumer_group(key.group_id)) is not None:
                group.resolved.pop(key.regular_expression, None)

    def _known_consumer_group(self, group_id: str) -> ConsumerGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def _consumer_group(self, group_id: str) -> ConsumerGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            group = self._groups[group_id] = ConsumerGroup()
        return group

    def make(self, groups: GroupRegistry, now_ms: int) -> Iterator[Group]:
        """Create the groups in a registry, one by one."""
        for group_id, restored in self._groups.items():
            if isinstance(restored, ConsumerGroup):
                group = groups.create(group_id, now_ms, "consumer")
                _fill_consumer_group(group, restored)
            else:
                group = groups.create(group_id, now_ms)
                _fill_classic_group(group, restored)
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


def _fill_consumer_group(group: Group, restored: ConsumerGroup) -> None:
    group.protocol_type = "consumer"
    group.generation = restored.epoch
    for member_id, member in restored.members.items():
        classic = member.classic_member_metadata
        group.add_member(
            Member(
                member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=0 if classic is None else classic.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                protocols=()
                if classic is None
                else tuple((known.name, known.metadata) for known in classic.supported_protocols),
                epoch=restored.member_epochs.get(member_id, NO_GENERATION),
                speaks_classic=classic is not None,
            )
        )
    group.state = GroupState.STABLE if restored.members else GroupState.EMPTY
    group.subscribed_topics = restored.subscribed_topics()
