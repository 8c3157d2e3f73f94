"""What Kafka releases do differently with share groups."""

from __future__ import annotations

from functools import cached_property

from kproto.codes import ErrorCode
from kproto_server.releases.release import VersionBehavior

FENCED_STATE_EPOCH_BEFORE_4_4 = (
    "The share coordinator rejected the request because the share-group state epoch did not match."
)


class ShareBehavior(VersionBehavior):
    """The switches of share groups."""

    @cached_property
    def first_group_epoch(self) -> int:
        """The epoch of a group before its first member has joined (measured on 4.2.2 and 4.3.1)."""
        return 1 if self.at_least(4, 3) else 0

    @cached_property
    def assigns_empty_groups(self) -> bool:
        """Whether the assignment epoch follows the group epoch when the last member leaves (measured on 4.3.1 and
        4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def fails_on_unknown_topics(self) -> bool:
        """Whether ShareFetch fails as a whole if its session has an unknown topic id: in 4.3 (measured on 4.2.2, 4.3.1
        and 4.4.0)."""
        return self.at_least(4, 3) and not self.at_least(4, 4)

    @cached_property
    def fails_without_ids(self) -> bool:
        """Whether requests whose group id or member id is null fail, instead of being invalid (measured on 4.2.2 and
        4.3.1)."""
        return not self.at_least(4, 3)

    @cached_property
    def begins_added_partitions(self) -> bool:
        """Whether a group reads partitions that are added to its topic from their beginning, and not from where
        `share.auto.offset.reset` says (measured on 4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def keeps_progress(self) -> bool:
        """Whether the write of a state keeps start offset and count of what is done where they are higher (measured on
        4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def reads_without_leader_epoch(self) -> bool:
        """Whether the leader epoch -1 reads a state of any leader (measured on 4.2.2, 4.3.1 and 4.4.0)."""
        return self.at_least(4, 3)

    @cached_property
    def refuses_negative_epochs(self) -> bool:
        """Whether requests to the share coordinator with a negative epoch are invalid (measured on 4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def raises_pending_epoch(self) -> bool:
        """Whether partitions without members raise the group epoch even if that was raised since the last assignment
        (measured on 4.2.2 and 4.3.1)."""
        return not self.at_least(4, 3)

    def message_of(self, error: int) -> str:
        """Return the message of an error: 4.4 has another one for FENCED_STATE_EPOCH (measured on 4.3.1 and 4.4.0)."""
        if error == ErrorCode.FENCED_STATE_EPOCH and not self.at_least(4, 4):
            return FENCED_STATE_EPOCH_BEFORE_4_4
        return ErrorCode(error).message
