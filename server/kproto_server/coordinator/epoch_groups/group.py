"""A registered group whose state is one immutable value: what the group has, and what the log has of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kproto_server.coordinator.groups import Group

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.coordinator.change_log import Batch
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Kind

SESSION = "session"
REVOCATION = "revocation"
JOIN = "join"
SYNC = "sync"
DEADLINES = (SESSION, REVOCATION, JOIN, SYNC)
"""The kinds of deadlines of a member; the last two are those of classic members."""


class Write:
    """A change that the log has, or gets."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: int = 0
        """The error code of the write, once the log has settled it."""


class HasMembers(Protocol):
    """The data of a group."""

    @property
    def members(self) -> Mapping[str, Any]:
        """Members by id."""
        ...


DataT = TypeVar("DataT", bound=HasMembers)


class EpochGroup(Group, Generic[DataT]):
    """A group of KIP-848, KIP-932 or KIP-1071. `members` of the base class has those of `data`, each replaced and never
    changed.

    A subclass has `apply`, which replaces the data, and says how a change is written.
    """

    __slots__ = (
        "data",
        "deadlines",
        "in_flight",
        "is_assigning",
        "logged",
        "retry_delays_ms",
        "settled",
        "topics_version",
    )

    def __init__(self, group_id: str, now_ms: int, kind: Kind, data: DataT) -> None:
        """``data``: what a new group has, of which nothing is in the log."""
        super().__init__(group_id, now_ms, kind)
        self.data: DataT = data
        self.logged: DataT = data
        """The data whose records the log has or will get. A group that was converted from another kind has none."""
        self.deadlines: dict[tuple[str, str], int] = {}
        """When a member is removed, by its id and the kind of the deadline (`deadlines`)."""
        self.retry_delays_ms: dict[str, int] = {}
        """After which time the removal of a member is repeated, by its id, while the log cannot write it."""
        self.topics_version: int = -1
        """The version of the topics when the hash of the subscribed topics was computed."""
        self.settled: DataT = data
        """The data that the log has for certain."""
        self.is_assigning: bool = False
        """Whether targets are being computed in steps."""
        self.in_flight: dict[Write, DataT] = {}
        """The data of the changes that the log has not settled, in its order."""

    @staticmethod
    def new_data(first_epoch: int) -> DataT:
        """Return the data of a new group, of which nothing is in the log."""
        raise NotImplementedError

    def apply(self, data: DataT, now_ms: int) -> None:
        """Replace the data, and all that follows from them."""
        raise NotImplementedError

    def restore(self, data: DataT, now_ms: int) -> None:
        """Take the data that the log has."""
        self.apply(data, now_ms)
        self.logged = self.settled = data

    def data_before(self, write: Write) -> DataT:
        """Return the data on which a change in flight was decided."""
        data = self.settled
        for other, its_data in self.in_flight.items():
            if other is write:
                break
            data = its_data
        return data

    def change_batch(
        self, coordinator: GroupCoordinator, before: DataT, after: DataT, now_ms: int, *, removes_classic: bool = False
    ) -> Batch:
        """Return the batch of a change of the data, and the number of its records.

        ``removes_classic``: whether it begins with the tombstone of a classic group.
        """
        raise NotImplementedError

    def drop_deadlines(self, member_id: str, *kinds: str) -> None:
        """Drop the deadlines of a member, by default all."""
        for kind in kinds or DEADLINES:
            self.deadlines.pop((member_id, kind), None)

    def note_commit(self, member_id: str, now_ms: int) -> None:
        """Do nothing: in such a group, a commit does not extend the session."""
