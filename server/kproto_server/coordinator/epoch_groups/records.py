"""Which members of a group a change writes records of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kproto.records.coordinator import CoordinatorKey
    from kproto_server.coordinator.epoch_groups.batches import Pair

    MakeKey = Callable[..., CoordinatorKey]
    """Returns a key of ``group_id`` and ``member_id``."""

MemberT = TypeVar("MemberT")


class MemberKeys(NamedTuple):
    """The keys of a member's records, in the order in which Kafka writes their tombstones."""

    current: MakeKey
    target: MakeKey
    metadata: MakeKey

    def of_removed(self, group_id: str, before: Mapping[str, MemberT], after: Mapping[str, MemberT]) -> Iterator[Pair]:
        """Yield the tombstones of the members that a change removes."""
        for member_id in before:
            if member_id not in after:
                for key in self:
                    yield key(group_id=group_id, member_id=member_id), None

    def of_all(self, group_id: str, members: Mapping[str, MemberT], target_metadata: CoordinatorKey) -> Iterator[Pair]:
        """Yield the tombstones of all members and of their target assignment."""
        for key in (self.current, self.target):
            for member_id in members:
                yield key(group_id=group_id, member_id=member_id), None
        yield target_metadata, None
        for member_id in members:
            yield self.metadata(group_id=group_id, member_id=member_id), None


class ChangedMember(NamedTuple, Generic[MemberT]):
    """A member that is new, or another object than before."""

    member_id: str
    member: MemberT
    old: MemberT | None

    def has_other(self, content: Callable[[MemberT], object]) -> bool:
        """Return whether a record of the member has other content than before."""
        return self.old is None or content(self.old) != content(self.member)


def changed_members(before: Mapping[str, MemberT], after: Mapping[str, MemberT]) -> list[ChangedMember[MemberT]]:
    """Return the members that a change adds or replaces."""
    return [
        ChangedMember(member_id, member, old)
        for member_id, member in after.items()
        if (old := before.get(member_id)) is not member
    ]
