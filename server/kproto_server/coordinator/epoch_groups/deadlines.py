"""The deadlines of a group's members, by which they are removed.

Theory of operation. A member has up to four deadlines at a time: its session, which each heartbeat extends; the end of
a revocation; and, for a classic member, its next JoinGroup and its SyncGroup. A group has one timer, set no later than
the first deadline. As heartbeats only move deadlines back, the timer fires about once for each session timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kproto_server.coordinator.epoch_groups.assigning import Pace
from kproto_server.coordinator.epoch_groups.group import REVOCATION, SESSION, EpochGroup
from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.coordinator.coordinator import GroupCoordinator

    Remove = Callable[["GroupCoordinator", "GroupT", str, int], object]
    """Removes a member of a group."""

RETRY_MS = 500
"""After which time Kafka's coordinator repeats the removal of a member that could not be written."""
RETRY_MAX_MS = 45_000
"""The default session timeout. DEVIATION: the time is doubled up to it; a day would have 172,800 removals otherwise."""

GroupT = TypeVar("GroupT", bound="EpochGroup[Any]")


class ReconciledMember(Protocol):
    """A member that may have to revoke something."""

    member_id: str
    epoch: int
    rebalance_timeout_ms: int

    @property
    def state(self) -> object: ...

    @property
    def revoking(self) -> object: ...


class Deadlines(Generic[GroupT]):
    """The deadlines of all groups of a kind."""

    def __init__(self, remove: Remove[GroupT], revoking_state: object = None) -> None:
        """``remove``: called when a deadline of a member has passed; ``revoking_state``: that of a member that has to
        revoke something; None: no member of this kind has to."""
        self._remove = remove
        self._revoking_state = revoking_state

    def set(self, coordinator: GroupCoordinator, group: GroupT, member_id: str, kind: str, deadline_ms: int) -> None:
        """Set or move a deadline of a member."""
        group.deadlines[member_id, kind] = deadline_ms
        if kind == SESSION:
            group.retry_delays_ms.pop(member_id, None)
        timer = group.session_timer
        if timer is None or timer.action is None or deadline_ms < timer.due_ms:
            self._set_timer(coordinator, group, deadline_ms)

    def note_reconciliation(
        self,
        coordinator: GroupCoordinator,
        group: GroupT,
        before: ReconciledMember,
        member: ReconciledMember,
        now_ms: int,
    ) -> None:
        """Begin or end the time that a member has to revoke what it must give up."""
        if member.state is not self._revoking_state:
            group.drop_deadlines(member.member_id, REVOCATION)
        elif (member.state, member.epoch, member.revoking) != (before.state, before.epoch, before.revoking):
            self.set(coordinator, group, member.member_id, REVOCATION, now_ms + member.rebalance_timeout_ms)

    def begin(self, coordinator: GroupCoordinator, group: GroupT, session_timeout_ms: int, now_ms: int) -> None:
        """Begin the sessions of a loaded group: each member has the full session timeout (EX-17)."""
        for member_id, member in group.data.members.items():
            self.set(coordinator, group, member_id, SESSION, now_ms + session_timeout_ms)
            if self._revoking_state is not None and member.state is self._revoking_state:
                self.set(coordinator, group, member_id, REVOCATION, now_ms + member.rebalance_timeout_ms)

    def expire(self, coordinator: GroupCoordinator, group: GroupT, member_id: str) -> None:
        """Remove a member as if its session had expired."""
        self.set(coordinator, group, member_id, SESSION, coordinator.clock.now_ms())
        if group.session_timer is not None:
            group.session_timer.cancel()
        self._check(coordinator, group)

    def _set_timer(self, coordinator: GroupCoordinator, group: GroupT, due_ms: int) -> None:
        if group.session_timer is not None:
            group.session_timer.cancel()
        group.session_timer = coordinator.clock.call_at(
            due_ms, lambda: self._check(coordinator, group), in_background=True
        )

    def _check(self, coordinator: GroupCoordinator, group: GroupT) -> None:
        """Remove the members of which a deadline has passed, each by a change of its own, which takes time in
        proportion to the members; clients are served in between unless the clock stands still."""
        group.session_timer = None
        now_ms, pace = coordinator.clock.now_ms(), Pace()
        for (member_id, kind), deadline_ms in sorted(group.deadlines.items(), key=lambda one: one[1]):
            if group.state is GroupState.DEAD or coordinator.groups.get(group.group_id) is not group:
                return  # deleted, or a classic group now
            if deadline_ms > now_ms:
                break
            if member_id in group.members:
                self._remove(coordinator, group, member_id, now_ms)
                group.drop_deadlines(member_id)
                # The log may not be able to write the removal.
                delay_ms = group.retry_delays_ms.get(member_id, RETRY_MS)
                group.deadlines[member_id, SESSION] = now_ms + delay_ms
                group.retry_delays_ms[member_id] = min(2 * delay_ms, RETRY_MAX_MS)
                if pace.ends_step(len(group.members)) and coordinator.clock.mode.rate:
                    self._set_timer(coordinator, group, now_ms + 1)
                    return
            elif group.deadlines.get((member_id, kind)) == deadline_ms:
                del group.deadlines[member_id, kind]
                group.retry_delays_ms.pop(member_id, None)
        if group.deadlines and group.session_timer is None:
            self._set_timer(coordinator, group, min(group.deadlines.values()))
