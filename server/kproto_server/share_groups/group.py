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
from kproto_server.share_groups.data import ShareData

if TYPE_CHECKING:
    from kproto_server.coordinator.change_log import Batch
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Member
    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior

PROTOCOL_TYPE = "share"


class ShareGroup(EpochGroup[ShareData]):
    """A share group."""

    __slots__ = ()

    def __init__(self, group_id: str, now_ms: int, first_epoch: int) -> None:
        super().__init__(group_id, now_ms, "share", self.new_data(first_epoch))
        self.protocol_type: str | None = PROTOCOL_TYPE

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
        self.data: ShareData = data
        self.members: dict[str, Member] = cast("dict[str, Member]", data.members)
        self.generation: int = data.epoch
        self.subscribed_topics = frozenset(name for member in data.members.values() for name in member.topics)
        state = GroupState.STABLE if data.members else GroupState.EMPTY
        if state is not self.state:
            self.transition_to(state, now_ms)
