"""The members of all share groups: their groups in the coordinator's registry, sessions, and subscribed topics."""

from __future__ import annotations

from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.epoch_groups.assigning import SIZE_MAX, Pace
from kproto_server.coordinator.epoch_groups.deadlines import Deadlines
from kproto_server.coordinator.epoch_groups.group import Write
from kproto_server.coordinator.epoch_groups.writing import write
from kproto_server.coordinator.subscribed_topics import metadata_hash
from kproto_server.deferred import sum_exceeds
from kproto_server.share_groups.assignor import assign
from kproto_server.share_groups.data import NO_TOPIC, ShareData, TopicPartitions, topics_of
from kproto_server.share_groups.group import ShareGroup
from kproto_server.share_groups.share_states import NO_OFFSET, SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence

    from kproto_server.cluster.cluster import Cluster
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.share_groups.data import Assignment, ShareMember
    from kproto_server.share_groups.group_settings import GroupSettings
    from kproto_server.share_groups.state_store import ShareStateStore
    from kproto_server.share_groups.version_behavior import ShareBehavior

SLICE_PARTITIONS = 250
"""Partitions whose states a heartbeat begins at one turn: about 5 ms, on disk 20 ms."""


class ShareMembers:
    """The members of all share groups."""

    def __init__(
        self,
        cluster: Cluster,
        coordinator: GroupCoordinator,
        store: ShareStateStore,
        settings_of: Callable[[str], GroupSettings],
        behavior: ShareBehavior,
    ) -> None:
        self.behavior: ShareBehavior = behavior
        self.coordinator: GroupCoordinator = coordinator
        self.settings_of: Callable[[str], GroupSettings] = settings_of
        self._cluster = cluster
        self._store = store
        self.deadlines: Deadlines[ShareGroup]
        """The ends of the members' sessions."""

    # Groups.

    def group_for(self, group_id: str, *, creates: bool, now_ms: int) -> ShareGroup | Refusal:
        """Return a share group, or why there is none. A new one is not registered before its first change."""
        group = self.coordinator.group(group_id)
        if isinstance(group, ShareGroup):
            return group
        if group is not None:
            return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        if not creates:
            return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return ShareGroup(group_id, now_ms, self.behavior.first_group_epoch)

    def known(self, group_id: str) -> ShareGroup | None:
        """Return a share group; None if no group has the id, or one of another kind."""
        group = self.coordinator.groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def write(self, group: ShareGroup, data: ShareData, now_ms: int) -> Write:
        """Give a group its next data, and append the difference to the log."""
        return write(self.coordinator, group, data, now_ms)

    # Topics.

    @property
    def topics_version(self) -> int:
        """A number that rises with each change of topics."""
        return self._cluster.version

    def metadata_hash(self, data: ShareData) -> int:
        """Return the hash of the subscribed topics."""
        return metadata_hash(topics_of(data), self._cluster.topics, self._cluster.rack_of)

    def targets(self, data: ShareData) -> Generator[None, None, dict[str, Assignment]]:
        """Return the targets of the members, computed in steps."""
        subscriptions: dict[str, tuple[bytes, ...]] = {}
        known: dict[int, tuple[bytes, ...]] = {}
        pace = Pace()
        for name, member in data.members.items():
            topic_ids = known.get(id(member.topics))
            if topic_ids is None:
                topic_ids = known[id(member.topics)] = self.topic_ids(member)
                if pace.ends_step(len(topic_ids)):
                    yield
            subscriptions[name] = topic_ids
        return (yield from assign(subscriptions, data.initialized, data.targets))

    def is_large(self, data: ShareData) -> bool:
        """Return whether an assignment takes so long that it is computed in steps."""
        subscriptions = [member.topics for member in data.members.values()]
        is_even = len({id(topics) for topics in subscriptions}) == 1
        counts = chain(
            map(len, subscriptions[:1] if is_even else subscriptions),
            (len(topic.partitions) for topic in data.initialized.values()),
            (len(data.members),),
        )
        return sum_exceeds(SIZE_MAX, counts)

    def topic_ids(self, member: ShareMember) -> tuple[bytes, ...]:
        """Return the ids of a member's topics that exist."""
        topics = self._cluster.topics
        return tuple([topics[topic].topic_id for topic in member.topics if topic in topics])

    # States of share partitions.

    def uninitialized(self, group: ShareGroup) -> dict[bytes, TopicPartitions]:
        """Return the subscribed partitions that have no state yet."""
        topics, initialized = self._cluster.topics, group.data.initialized
        found = {}
        for name in group.subscribed_topics or ():
            topic = topics.get(name)
            if topic is None:
                continue
            known = initialized.get(topic.topic_id, NO_TOPIC).partitions
            if len(known) < len(topic.partitions):
                found[name] = topic, known
        return {
            topic.topic_id: TopicPartitions(name, frozenset(range(len(topic.partitions))) - known)
            for name, (topic, known) in sorted(found.items(), key=itemgetter(0))
        }

    def initialize(self, group: ShareGroup) -> Generator[None, None, None]:
        """Begin the states of the subscribed partitions that have none, in slices.

        If the group ends meanwhile, the others have none. The group has all of them at once, since each change of its
        partitions writes them all. Other heartbeats do not begin states meanwhile.
        """
        if group.is_initializing:
            return
        is_large = len(group.subscribed_topics or ()) > SLICE_PARTITIONS
        if is_large:
            yield
        missing = self.uninitialized(group)
        if not missing or group.is_initializing:
            return
        begun = frozenset(group.data.initialized if self.behavior.begins_added_partitions else ())
        wanted = ((topic_id, index) for topic_id, topic in missing.items() for index in sorted(topic.partitions))
        errors: dict[SharePartitionKey, int] = {}
        group.is_initializing = True
        try:
            if is_large:
                yield
                self._store.create_topic(self.coordinator.clock.now_ms())
                yield
            while self.known(group.group_id) is group and (found := list(islice(wanted, SLICE_PARTITIONS))):
                offsets: dict[bytes, dict[int, int]] = {}
                for topic_id, index in found:
                    if index not in group.data.initialized.get(topic_id, NO_TOPIC).partitions:
                        offsets.setdefault(topic_id, {})[index] = 0 if topic_id in begun else NO_OFFSET
                self._begin(group, offsets, errors, self.coordinator.clock.now_ms())
                if len(found) == len(errors) < SLICE_PARTITIONS:
                    return
                yield
        finally:  # also if the client ends meanwhile
            group.is_initializing = False
            self._note_begun(group, errors)

    def begin_states(
        self, group: ShareGroup, offsets: Mapping[bytes, Mapping[int, int]], now_ms: int
    ) -> dict[SharePartitionKey, int]:
        """Begin states at start offsets, by topic id and partition; return errors, which are complete when the log is.

        The group has those partitions when the log has their states.
        """
        if self.known(group.group_id) is None:
            self.coordinator.groups.add(group)
        errors: dict[SharePartitionKey, int] = {}
        self._begin(group, offsets, errors, now_ms)
        self._note_begun(group, errors)
        return errors

    def _begin(
        self,
        group: ShareGroup,
        offsets: Mapping[bytes, Mapping[int, int]],
        errors: dict[SharePartitionKey, int],
        now_ms: int,
    ) -> None:

        def settle(key: SharePartitionKey, error: int) -> None:
            errors[key] = error

        for topic_id, parts in offsets.items():
            for partition, offset in sorted(parts.items()):
                key = SharePartitionKey(group.group_id, topic_id, partition)
                errors[key] = self._store.error(key, now_ms)
                if not errors[key]:
                    self._store.initialize(key, group.data.epoch, offset, now_ms, partial(settle, key))

    def _note_begun(self, group: ShareGroup, errors: Mapping[SharePartitionKey, int]) -> None:
        """Give a group the partitions of which states have begun, when the log has those."""
        self._store.then(lambda: self._initialized(group, [key for key, error in errors.items() if not error]))

    def _initialized(self, group: ShareGroup, done: Iterable[SharePartitionKey]) -> None:
        if not done or self.known(group.group_id) is not group:
            return
        data, now_ms = group.data, self.coordinator.clock.now_ms()
        found: dict[bytes, set[int]] = {}
        for _, topic_id, partition in done:
            found.setdefault(topic_id, set()).add(partition)
        initialized = dict(data.initialized)
        for topic_id, partitions in found.items():
            topic = self._cluster.topic_by_id(topic_id)
            if topic is not None:
                before = initialized.get(topic_id, NO_TOPIC).partitions
                initialized[topic_id] = TopicPartitions(topic.name, before | partitions)
        self.write(group, data._replace(initialized=initialized), now_ms)

    def delete_states(self, group: ShareGroup, topic_ids: Sequence[bytes], now_ms: int) -> dict[SharePartitionKey, int]:
        """Delete the states of topics; return errors, which are complete when the log has settled everything."""
        errors: dict[SharePartitionKey, int] = {}

        def settle(key: SharePartitionKey, error: int) -> None:
            errors[key] = error

        initialized = dict(group.data.initialized)
        for topic_id in topic_ids:
            for partition in sorted(initialized.pop(topic_id).partitions):
                key = SharePartitionKey(group.group_id, topic_id, partition)
                errors[key] = self._store.error(key, now_ms)
                if not errors[key]:
                    self._store.delete(key, now_ms, partial(settle, key))
        self.write(group, group.data._replace(initialized=initialized), now_ms)
        return errors

    def delete_all_states(self, group_id: str, now_ms: int) -> None:
        """Delete the states of a group that is deleted next."""
        group = self.known(group_id)
        if group is not None and group.data.initialized:
            self.delete_states(group, list(group.data.initialized), now_ms)

    def forget_topics(self, topic_ids: Collection[bytes], now_ms: int) -> None:
        """Take the partitions of deleted topics from all groups."""
        for group in self.coordinator.groups:
            if isinstance(group, ShareGroup) and any(topic_id in topic_ids for topic_id in group.data.initialized):
                kept = {name: topic for name, topic in group.data.initialized.items() if name not in topic_ids}
                self.write(group, group.data._replace(initialized=kept), now_ms)
