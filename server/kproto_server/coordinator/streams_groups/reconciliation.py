"""The next current assignment of a member, on its way to the target assignment.

Theory of operation. A step splits the tasks of each role: those that the member keeps, those that it has to revoke,
those that it gets, and those that it waits for because another member still has them. Members of one process share a
state directory, so that a task may have one role in a process. While there is something to revoke, the member gets
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.streams_groups.data import NO_TASKS, MemberState, TaskSets, as_tasks, replace, task_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.coordinator.streams_groups.data import StreamsMember
    from kproto_server.coordinator.streams_groups.group import StreamsGroup

Task = tuple[str, int]
"""Subtopology id and partition."""


class Step(NamedTuple):
    """What the next step of a member depends on."""

    target: TaskSets
    assignment_epoch: int
    """The epoch of the target."""
    owned: TaskSets | None
    """The tasks that the member says it has; None: it does not say."""
    changes_roles: bool = True
    """Whether the member may change the role of a task in one step."""


class _Role:
    """The tasks of one role: from the present ones to the target."""

    def __init__(self, current: set[Task], target: set[Task], is_free: Callable[[Task], bool]) -> None:
        self.current: set[Task] = current
        self.target: set[Task] = target
        self.kept: set[Task] = current & target
        self.revoked: set[Task] = current - target
        self.added: set[Task] = {task for task in target - current if is_free(task)}
        self.waits: bool = len(self.added) < len(target - current)

    def take_over(self, task: Task) -> None:
        """Keep a task that the member has in another role."""
        self.added.remove(task)
        self.kept.add(task)


def reconcile(group: StreamsGroup, member: StreamsMember, step: Step) -> StreamsMember:
    """Return the member after its next step towards the target; the same object if it can take none."""
    match member.state:
        case MemberState.STABLE if member.epoch == step.assignment_epoch:
            return member
        case MemberState.UNREVOKED_TASKS if _has_any_of(step.owned, member.revoking):
            return member
        case MemberState.UNREVOKED_TASKS:
            return _next(group, member, member.epoch + 1, step)
        case MemberState.UNKNOWN:
            return _next(group, member, step.assignment_epoch, step)
        case _:
            return _next(group, member, member.epoch, step)


def _has_any_of(owned: TaskSets | None, tasks: TaskSets) -> bool:
    """Return whether the member still has some of the tasks; it has if it does not say."""
    return owned is None or owned.has_any_of(tasks)


def _next(group: StreamsGroup, member: StreamsMember, epoch: int, step: Step) -> StreamsMember:
    active, standby, warmup = _roles(group, member, step)
    if step.changes_roles:
        for task in active.current & standby.added:
            standby.take_over(task)
        for before, after in ((standby, warmup), (warmup, standby)):
            for task in before.current & after.added:
                after.take_over(task)
                before.revoked.discard(task)
        for role in (standby, warmup):
            role.revoked -= active.target
    revoked = _task_sets(active.revoked, standby.revoked, warmup.revoked)
    must_revoke = bool(revoked) and _has_any_of(step.owned, revoked)
    if step.changes_roles:
        for role in (standby, warmup):
            promoted = role.current & active.target
            role.kept |= promoted if must_revoke else promoted - active.added
    kept = _task_sets(active.kept, standby.kept, warmup.kept)
    if must_revoke:
        return _moved(member, MemberState.UNREVOKED_TASKS, epoch, kept, revoked)
    waits = active.waits or standby.waits or warmup.waits
    state = MemberState.UNRELEASED_TASKS if waits else MemberState.STABLE
    assigned = kept.with_all_of(_task_sets(active.added, standby.added, warmup.added))
    return _moved(member, state, step.assignment_epoch, assigned, NO_TASKS)


def _roles(group: StreamsGroup, member: StreamsMember, step: Step) -> list[_Role]:
    """Return the three roles of the member's tasks."""
    mine = [set(task_ids(tasks)) for tasks in member.assigned]
    own = mine if step.changes_roles else [set[Task](), set[Task](), set[Task]()]
    process_id = member.process_id

    def is_active(task: Task) -> bool:
        return group.active_processes.get(task) == process_id

    def is_standby(task: Task) -> bool:
        return process_id in group.standby_processes.get(task, ())

    def is_warmup(task: Task) -> bool:
        return process_id in group.warmup_processes.get(task, ())

    def may_be_active(task: Task) -> bool:
        is_replica = (is_standby(task) and task not in own[1]) or (is_warmup(task) and task not in own[2])
        return task not in group.active_processes and not is_replica

    def may_be_standby(task: Task) -> bool:
        is_other = (is_active(task) and task not in own[0]) or (is_warmup(task) and task not in own[2])
        return not is_other and not is_standby(task)

    def may_be_warmup(task: Task) -> bool:
        return not is_active(task) and not (is_standby(task) and task not in own[1]) and not is_warmup(task)

    checks = (may_be_active, may_be_standby, may_be_warmup)
    targets = [set(task_ids(tasks)) for tasks in step.target]
    return [_Role(current, target, check) for current, target, check in zip(mine, targets, checks, strict=True)]


def _task_sets(active: set[Task], standby: set[Task], warmup: set[Task]) -> TaskSets:
    return TaskSets(as_tasks(active), as_tasks(standby), as_tasks(warmup))


def _moved(
    member: StreamsMember, state: MemberState, epoch: int, assigned: TaskSets, revoking: TaskSets
) -> StreamsMember:
    """Return the member in a state, which it may be in already."""
    is_same = (state, epoch, epoch, assigned, revoking) == (
        member.state,
        member.epoch,
        member.previous_epoch,
        member.assigned,
        member.revoking,
    )
    if is_same:
        return member
    return replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking=revoking,
        task_epochs=task_epochs(member.task_epochs, assigned, revoking, epoch),
    )


def task_epochs(before: Mapping[Task, int], assigned: TaskSets, revoking: TaskSets, epoch: int) -> dict[Task, int]:
    """Return the epochs of a member's active tasks; those that it did not have before get a new one."""
    return {task: before.get(task, epoch) for tasks in (assigned.active, revoking.active) for task in task_ids(tasks)}
