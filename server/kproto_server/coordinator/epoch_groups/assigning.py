"""The target assignment of a large group: computed in steps behind the heartbeat that finds it missing.

Theory of operation. Other clients are served between the steps. The computation reads the data that the group has as it
begins, which never change, and its targets are those of their epoch, as with the assignor threads of Kafka 4.4
(`consumer.assignor.offload.enable`). They are written some members at a time, the assignment epoch last. If the group
has another epoch by then, the next heartbeat begins again. Members get their targets with their next heartbeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto_server.clock import Steps
from kproto_server.coordinator.epoch_groups.writing import write

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.epoch_groups.group import EpochGroup

SIZE_MAX = 5_000
"""Topics and partitions of an assignment that is computed at once, counted for each member: about 15 ms."""
STEP_SIZE = 3_000
"""Those of a step: about 10 ms."""


class Pace:
    """Says after which elements a computation ends a step."""

    def __init__(self) -> None:
        self._left = STEP_SIZE

    def ends_step(self, size: int) -> bool:
        """Note the size of what was done; return whether the step ends."""
        self._left -= size
        if self._left > 0:
            return False
        self._left = STEP_SIZE
        return True


def assign_later(
    coordinator: GroupCoordinator,
    group: EpochGroup[Any],
    data: Any,
    targets: Generator[None, None, Mapping[str, Any]],
    finished: Callable[[Any, int], Any],
) -> None:
    """Compute targets in steps, behind the present request, unless the group's are being computed.

    Args:
        data: the data of the group, of which the targets are.
        targets: the computation.
        finished: returns the data of the group, at a time, with the assignment epoch of ``data``.
    """
    if group.is_assigning:
        return
    group.is_assigning = True
    steps = _steps(coordinator, group, data, targets, finished)
    clock = coordinator.clock
    clock.call_at(clock.now_ms(), lambda: Steps(clock).begin(steps), for_client=True)


def _steps(
    coordinator: GroupCoordinator,
    group: EpochGroup[Any],
    before: Any,
    computation: Generator[None, None, Mapping[str, Any]],
    finished: Callable[[Any, int], Any],
) -> Iterator[None]:
    try:
        targets = yield from computation
        pace = Pace()
        written: dict[str, Any] = {}
        for member_id in before.members:
            written[member_id] = targets.get(member_id, {})
            if pace.ends_step(1 + len(written[member_id])):
                if not _is_due(coordinator, group, before):
                    return
                write(coordinator, group, _with_targets(group.data, written), coordinator.clock.now_ms())
                written = {}
                yield
        if _is_due(coordinator, group, before):
            now_ms = coordinator.clock.now_ms()
            write(coordinator, group, finished(_with_targets(group.data, written), now_ms), now_ms)
    finally:
        group.is_assigning = False


def _is_due(coordinator: GroupCoordinator, group: EpochGroup[Any], before: Any) -> bool:
    """Return whether the group still needs the targets. A static member that was replaced has none of them."""
    data = group.data
    if coordinator.groups.get(group.group_id) is not group or before.epoch <= data.assignment_epoch:
        return False
    return bool(data.epoch != before.epoch or data.members.keys() == before.members.keys())


def _with_targets(data: Any, targets: Mapping[str, Any]) -> Any:
    """Return the data with the targets of the members that are still there; those that are equal stay as they are."""
    known = data.targets
    changed = {
        member_id: target
        for member_id, target in targets.items()
        if member_id in data.members and (member_id not in known or known[member_id] != target)
    }
    return data._replace(targets={**known, **changed})
