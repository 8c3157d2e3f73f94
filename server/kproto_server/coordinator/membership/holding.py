"""A test holds the rebalances of a classic group, at the end of one of their two phases, until it releases them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.membership import timers
from kproto_server.coordinator.membership.phases import DelayedJoin, HeldJoin
from kproto_server.coordinator.membership.rebalance import rebalance_timeout_ms, try_complete_join
from kproto_server.coordinator.membership.state_machine import COMPLETING
from kproto_server.coordinator.membership.sync import write_assignments

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator


def release(coordinator: GroupCoordinator, group_id: str, now_ms: int) -> bool:
    """Have the rebalance of a group go on; return whether rebalances of the group were held.

    Members that are missing have the rebalance timeout from now on.
    """
    hold = coordinator.holds.pop(group_id, None)
    group = coordinator.groups.get(group_id)
    if hold is None or group is None:
        return hold is not None
    if isinstance(group.phase, HeldJoin):
        group.enter_phase(DelayedJoin(now_ms + rebalance_timeout_ms(group)))
        try_complete_join(coordinator, group, now_ms)
    elif hold.assignments is not None and group.state is COMPLETING:
        generation, assignments = hold.assignments
        if generation == group.generation:
            write_assignments(coordinator, group, assignments, now_ms)
    timers.schedule(coordinator, group)
    return True
