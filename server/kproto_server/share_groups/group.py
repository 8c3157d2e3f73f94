"""A registered share group: its members, their assignments, and the share partitions that were initialized for it.

Theory of operation. A group has three epochs, as a consumer group of KIP-848: its own, which rises with its members'
subscriptions and with the subscribed topics; the assignment epoch, of the group epoch for which the targets were
computed; and each member's. Partitions may have several members, so that no member has to wait for another one: it
takes its target with its next heartbeat.

Partitions are assigned once the share coordinator has a state for them (`ShareData.initialized`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kproto_server.coordinator.epoch_groups.group import EpochGroup
from kproto_server.coordinator.groups import GroupState
from kproto_server.share_groups.data import ShareData, topics_of

if TYPE_CHECKING:
    from kproto_server.coordinator.change_log import Batch
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Member
    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior

PROTOCOL_TYPE = "share"


class ShareGroup(EpochGroup[ShareData]):
    """A share group."""

    __slots__ = ("_compared", "is_initializing")

    def __init__(self, group_id: str, now_ms: int, first_epoch: int) -> None:
        super().__init__(group_id, now_ms, "share", self.new_data(first_epoch))
        self.protocol_type: str | None = PROTOCOL_TYPE
        self.subscribed_topics = frozenset()
        self.is_initializing: bool = False
        """Whether states of its partitions are begun in slices."""
        self._compared: tuple[object, object, object, bool] = (None, None, None, False)
        """The targets, initialized partitions and topics that `has_unassigned` compared last, and the result."""

    @property
    def has_unassigned(self) -> bool:
        """Whether the targets are not those partitions of the subscribed topics that are initialized."""
        targets, initialized, names = self.data.targets, self.data.initialized, self.subscribed_topics or ()
        if self._compared[0] is targets and self._compared[1] is initialized and self._compared[2] is names:
            return self._compared[3]
        assigned: dict[bytes, set[int]] = {}
        for target in targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        found = any(
            topic.name in names and assigned.get(topic_id, set()) != topic.partitions
            for topic_id, topic in initialized.items()
        )
        self._compared = (targets, initialized, names, found)
        return found

    @staticmethod
    def new_data(first_epoch: int) -> ShareData:
        return ShareData(epoch=first_epoch, assignment_epoch=first_epoch)

    def record_keys(self, behavior: OffsetsLogBehavior) -> list[bytes]:
        """Return the keys of an Empty group."""
        from kproto.records import share_group_records as declared
        from kproto.records.coordinator import encode_key

        return [
            encode_key(declared.ShareGroupTargetAssignmentMetadataKey(group_id=self.group_id)),
            encode_key(declared.ShareGroupStatePartitionMetadataKey(group_id=self.group_id)),
            encode_key(declared.ShareGroupMetadataKey(group_id=self.group_id)),
        ]

    def change_batch(
        self,
        coordinator: GroupCoordinator,
        before: ShareData,
        after: ShareData,
        now_ms: int,
        *,
        removes_classic: bool = False,
    ) -> Batch:
        from kproto_server.coordinator.epoch_groups.batches import change_batch
        from kproto_server.share_groups.group_records import changes

        pairs = changes(self.group_id, before, after)
        return change_batch(coordinator, self.group_id, pairs, now_ms, removes_classic=removes_classic)

    def apply(self, data: ShareData, now_ms: int) -> None:
        """Replace the data, and what follows from them."""
        if data.members is not self.data.members:
            self.subscribed_topics = topics_of(data)
        self.data: ShareData = data
        self.members: dict[str, Member] = cast("dict[str, Member]", data.members)
        self.generation: int = data.epoch
        state = GroupState.STABLE if data.members else GroupState.EMPTY
        if state is not self.state:
            self.transition_to(state, now_ms)
