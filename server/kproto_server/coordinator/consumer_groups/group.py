"""A registered consumer group: its data, and what follows from them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, cast

from kproto_server.coordinator.consumer_groups.data import (
    NO_DATA,
    NO_PARTITIONS,
    GroupData,
    MemberState,
    subscribed_topics,
)
from kproto_server.coordinator.epoch_groups.group import EpochGroup
from kproto_server.coordinator.epoch_groups.records import changed_members
from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto.messages.k28_txn_offset_commit import TxnOffsetCommitRequest
    from kproto_server.cluster.topics import Topic
    from kproto_server.coordinator.change_log import Batch
    from kproto_server.coordinator.consumer_groups.data import Assignment, ConsumerMember
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Member
    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior


class ConsumerGroup(EpochGroup[GroupData]):
    """A group of KIP-848."""

    __slots__ = ("has_expressions", "is_matching", "owners", "topics_checked_until_ms")

    def __init__(self, group_id: str, now_ms: int, data: GroupData = NO_DATA) -> None:
        """``data``: what a new group has, of which nothing is in the log."""
        super().__init__(group_id, now_ms, "consumer", data)
        self.protocol_type: str | None = "consumer"
        self.subscribed_topics = frozenset()
        self.owners: dict[bytes, dict[int, str]] = {}
        """The member that owns a partition, or still has to revoke it, by topic id and index."""
        self.topics_checked_until_ms: int = 0
        """When the hash of the subscribed topics has to be computed again, even if no topic has changed."""
        self.is_matching: bool = False
        """Whether regular expressions are about to be matched against the topics."""
        self.has_expressions: bool = False
        """Whether any member subscribes by a regular expression."""

    @staticmethod
    def new_data(first_epoch: int) -> GroupData:
        return GroupData(epoch=first_epoch, assignment_epoch=first_epoch)

    def apply(self, data: GroupData, now_ms: int) -> None:
        """Replace the data, and all that follows from them."""
        before, resolved = self.data.members, self.data.resolved
        self.data: GroupData = data
        members = data.members
        changed = changed_members(before, members)
        removed = [old for member_id, old in before.items() if member_id not in members]
        for gone in removed:
            self._release(gone)
            self._drop_instance(gone.group_instance_id, gone.member_id)
        moved = [(one, old) for _, one, old in changed if old is None or _has_other_partitions(one, old)]
        for _, old in moved:
            if old is not None:
                self._release(old)
        for member, _ in moved:
            self._own(member)
        for _, member, old in changed:
            if old is not None and old.group_instance_id != member.group_instance_id:
                self._drop_instance(old.group_instance_id, old.member_id)
        for _, member, _ in changed:
            if member.group_instance_id is not None:
                self.static_members[member.group_instance_id] = member.member_id
        self.members: dict[str, Member] = cast("dict[str, Member]", members)
        self.generation: int = data.epoch
        joined = any(old is None or old.topics is not one.topics or old.regex != one.regex for _, one, old in changed)
        if joined or removed or data.resolved is not resolved:
            self.has_expressions = any(member.regex for member in members.values())
            self._set_subscribed_topics()
        state = self._state_of(data)
        if state is not self.state:
            self.transition_to(state, now_ms)

    def _release(self, member: ConsumerMember) -> None:
        member_id = member.member_id
        for topic_id, indexes in _owned(member):
            owners = self.owners.get(topic_id, {})
            for index in [index for index in indexes if owners.get(index) == member_id]:
                del owners[index]
            if not owners:
                self.owners.pop(topic_id, None)

    def _own(self, member: ConsumerMember) -> None:
        for topic_id, indexes in _owned(member):
            self.owners.setdefault(topic_id, {}).update(dict.fromkeys(indexes, member.member_id))

    def _set_subscribed_topics(self) -> None:
        topics = subscribed_topics(self.data)
        if topics != self.subscribed_topics:
            self.subscribed_topics = topics

    @staticmethod
    def _state_of(data: GroupData) -> GroupState:
        if not data.members:
            return GroupState.EMPTY
        if data.epoch > data.assignment_epoch:
            return GroupState.ASSIGNING
        epoch, stable = data.assignment_epoch, MemberState.STABLE
        if all(member.epoch == epoch and member.state is stable for member in data.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def change_batch(
        self,
        coordinator: GroupCoordinator,
        before: GroupData,
        after: GroupData,
        now_ms: int,
        *,
        removes_classic: bool = False,
    ) -> Batch:
        from kproto_server.coordinator.consumer_groups.records import changes
        from kproto_server.coordinator.epoch_groups.batches import change_batch

        pairs = changes(coordinator, self.group_id, before, after)
        return change_batch(coordinator, self.group_id, pairs, now_ms, removes_classic=removes_classic)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Return whether another member has a partition of the member's target."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        target: Assignment = self.data.targets.get(member.member_id, {})
        return any(
            not (indexes - member.assigned.get(topic_id, NO_PARTITIONS)).isdisjoint(self.owners.get(topic_id, ()))
            for topic_id, indexes in target.items()
        )

    def record_keys(self, behavior: OffsetsLogBehavior) -> list[bytes]:
        from kproto.records.coordinator import encode_key
        from kproto_server.coordinator.consumer_groups.records import tombstones

        return [encode_key(key) for key, _ in tombstones(behavior, self.group_id, self.data)]

    def had_partitions(
        self, request: OffsetCommitRequest | TxnOffsetCommitRequest, topics: Mapping[str, Topic]
    ) -> bool:
        member = self.data.members[request.member_id]
        epoch = request.generation_id_or_member_epoch
        for topic in request.topics:
            known = topics.get(topic.name)
            epochs = member.partition_epochs.get(topic.topic_id if known is None else known.topic_id, {})
            for partition in topic.partitions:
                since = epochs.get(partition.partition_index)
                if since is None or epoch < since:
                    return False
        # The commit cache asks without the topics of the request: then the reference path decides.
        return bool(request.topics)


def _owned(member: ConsumerMember) -> Iterable[tuple[bytes, frozenset[int]]]:
    """Return all partitions that a member has, by topic id; a topic may come twice."""
    return chain(member.assigned.items(), member.revoking.items())


def _has_other_partitions(member: ConsumerMember, before: ConsumerMember) -> bool:
    return member.assigned is not before.assigned or member.revoking is not before.revoking
