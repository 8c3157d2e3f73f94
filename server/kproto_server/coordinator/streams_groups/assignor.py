"""The assignor of streams groups, Kafka's `sticky`: members keep their tasks, and have as many as the others.

Theory of operation. Each task is active on one member. Tasks go first to the member that has them, then to one that has
them as standbys, as long as these have fewer than their share; the rest goes to the process with the fewest tasks for
each member, in the order of subtopologies. Standbys of stateful tasks follow in the same way, each on another process.

Where the result depends on the order of members or processes, it is that of a Java HashMap and PriorityQueue, as in
Kafka.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order, in_order_of_computed
from kproto.jvm.priority_queue import JavaPriorityQueue
from kproto_server.coordinator.epoch_groups.assigning import Pace
from kproto_server.coordinator.streams_groups.data import TaskSets, as_tasks, task_ids

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from kproto_server.coordinator.streams_groups.topology import Subtopologies
    from kproto_server.coordinator.streams_groups.version_behavior import StreamsBehavior

    Task = tuple[str, int]
    """Subtopology id and partition."""


TASK_SIZE = 5
"""A task takes as long as so many partitions of a consumer group."""


class MemberSpec(NamedTuple):
    """What the assignor knows of a member."""

    process_id: str
    former: TaskSets
    """The tasks that the member should keep."""
    offsets: Mapping[Task, int] = {}
    """The offsets of its state stores, where it has reported them and they count."""


class _Process:
    """The members of one process, and the tasks that they get."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """The number of tasks by member."""
        self.tasks: set[Task] = set()
        self.load: float = 0.0
        """The number of tasks for each member."""
        self._task_count = 0
        self._queue: JavaPriorityQueue[list[object]] | None = None

    def add(self, member_id: str, task: Task) -> int:
        """Give a task to a member; return how many it has then."""
        self._queue = None
        return self._add(member_id, task)

    def _add(self, member_id: str, task: Task) -> int:
        self.tasks.add(task)
        self.counts[member_id] += 1
        self._task_count += 1
        self.load = self._task_count / len(self.counts)
        return self.counts[member_id]

    def add_to_least_loaded(self, task: Task) -> tuple[str, int]:
        """Give a task to the member with the fewest; return the member, and how many it has then."""
        if len(self.counts) == 1:
            member_id = next(iter(self.counts))
            return member_id, self._add(member_id, task)
        if self._queue is None:
            members = in_hash_order(self.counts, java_hash)
            self._queue = JavaPriorityQueue([[one, self.counts[one]] for one in members], key=lambda entry: entry[1])
        entry = self._queue.poll()
        assert entry is not None, "a process has members"
        member_id = str(entry[0])
        entry[1] = self._add(member_id, task)
        self._queue.add(entry)
        return member_id, self.counts[member_id]


class _Share:
    """How many tasks a member may keep: those that are left, divided by the members that have less than that."""

    def __init__(self, task_count: int, member_count: int) -> None:
        self._tasks = task_count
        self._members = member_count
        self.quota: int = self._quota()

    def note(self, count: int) -> None:
        """A member has so many tasks now."""
        if count == self.quota:
            self._members -= 1
            self._tasks -= count
            self.quota = self._quota()

    def _quota(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


class _Assignment:
    """An assignment in progress."""

    def __init__(
        self,
        members: Mapping[str, MemberSpec],
        subtopologies: Subtopologies,
        standby_count: int,
        behavior: StreamsBehavior,
    ) -> None:
        self._behavior = behavior
        self._pace = Pace()
        self._members = members
        self._ids = in_hash_order(members, java_hash)
        self._standby_count = standby_count
        tasks = [(one, index) for one, found in subtopologies.items() for index in range(found.task_count)]
        self._active = tasks
        self._stateful = [task for task in tasks if subtopologies[task[0]].is_stateful]
        self._active_share = _Share(len(tasks), len(members))
        self._total_share = _Share(len(tasks) + standby_count * len(self._stateful), len(members))
        self._processes: dict[str, _Process] = {}
        self._former_active: dict[Task, str] = {}
        self._former_standby: dict[Task, list[str]] = {}
        self.active: dict[str, set[Task]] = {one: set() for one in members}
        self.standby: dict[str, set[Task]] = {one: set() for one in members}
        for member_id in self._ids:
            member = members[member_id]
            self._processes.setdefault(member.process_id, _Process()).counts[member_id] = 0
            self._former_active.update(dict.fromkeys(task_ids(member.former.active), member_id))
        self._note_former_standbys()

    def _note_former_standbys(self) -> None:
        """Find the members that have the state of tasks, those that are the furthest first."""
        candidates: dict[Task, list[tuple[bool, int, str]]] = {}
        for member_id in self._ids:
            member = self._members[member_id]
            held = set(task_ids(member.former.standby))
            for task in held:
                candidates.setdefault(task, []).append((False, -member.offsets.get(task, 0), member_id))
            for task, offset in member.offsets.items():
                if task not in held:
                    candidates.setdefault(task, []).append((True, -offset, member_id))
        for task, found in candidates.items():
            self._former_standby[task] = [member_id for *_, member_id in sorted(found, key=lambda one: one[:2])]

    def _process_of(self, member_id: str) -> _Process:
        return self._processes[self._members[member_id].process_id]

    def _count(self, member_id: str) -> int:
        return self._process_of(member_id).counts[member_id]

    def _by_load(self) -> JavaPriorityQueue[_Process]:
        added = [self._members[member_id].process_id for member_id in self._ids]
        if self._behavior.computes_processes:
            ordered = in_order_of_computed(added, java_hash, len(added))
        else:
            ordered = in_hash_order(dict.fromkeys(added), java_hash, len(added))
        return JavaPriorityQueue([self._processes[one] for one in ordered], key=attrgetter("load"))

    # Active tasks.

    def assign_active(self) -> Iterator[None]:
        left = [task for task in sorted(self._active, key=lambda one: (one[1], one[0])) if not self._keep_active(task)]
        yield
        left = [task for task in left if not self._activate_standby(task)]
        yield
        queue = self._by_load()
        for task in sorted(left):
            process = queue.poll()
            assert process is not None, "there are members"
            member_id, count = process.add_to_least_loaded(task)
            self._note_active(member_id, task, count)
            queue.add(process)
            if self._pace.ends_step(TASK_SIZE):
                yield

    def _keep_active(self, task: Task) -> bool:
        former = self._former_active.get(task)
        return former is not None and self._add_active(former, task)

    def _activate_standby(self, task: Task) -> bool:
        former = self._least_loaded(self._former_standby.get(task, ()), None)
        return former is not None and self._add_active(former, task)

    def _add_active(self, member_id: str, task: Task) -> bool:
        """Give a task to a member, unless it has its share."""
        if self._count(member_id) >= self._active_share.quota:
            return False
        self._note_active(member_id, task, self._process_of(member_id).add(member_id, task))
        return True

    def _note_active(self, member_id: str, task: Task, count: int) -> None:
        self.active[member_id].add(task)
        self._active_share.note(count)
        self._total_share.note(count)

    def _least_loaded(self, member_ids: Iterable[str], task: Task | None) -> str | None:
        """Return the first member whose process and itself have fewer tasks than those before it.

        ``task``: a standby task, which no process gets twice.
        """
        if self._behavior.keeps_first_standby:
            return self._least_loaded_in_4_3(list(member_ids), task)
        candidate, process_load, member_load = None, 0.0, 0
        for member_id in member_ids:
            process = self._process_of(member_id)
            if task is not None and task in process.tasks:
                continue
            count = process.counts[member_id]
            if candidate is None or (process.load < process_load and count < member_load):
                candidate, process_load, member_load = member_id, process.load, count
        return candidate

    def _least_loaded_in_4_3(self, member_ids: Sequence[str], task: Task | None) -> str | None:
        """Return the member as 4.3 finds it: none, if the first one's process has the task."""
        candidate = next(iter(member_ids), None)
        if candidate is None:
            return None
        first = self._process_of(candidate)
        process_load, member_load = first.load, first.counts[candidate]
        for member_id in member_ids[1:]:
            process = self._process_of(member_id)
            count = process.counts[member_id]
            if process.load < process_load and count < member_load and task not in process.tasks:
                candidate, process_load, member_load = member_id, process.load, count
        return None if task in first.tasks else candidate

    # Standby tasks.

    def assign_standbys(self) -> Iterator[None]:
        left: list[tuple[Task, int]] = []
        for task in sorted(self._stateful, key=lambda one: (one[1], one[0]), reverse=True):
            for number in range(self._standby_count):
                if not self._keep_standby(task):
                    left.append((task, self._standby_count - number))
                    break
            if self._pace.ends_step(TASK_SIZE):
                yield
        left.sort(key=lambda one: one[0], reverse=True)
        queue = self._by_load()
        for task, count in left:
            for _ in range(count):
                if not self._add_standby_to_least_loaded(queue, task):
                    break
            if self._pace.ends_step(TASK_SIZE * count):
                yield

    def _keep_standby(self, task: Task) -> bool:
        """Give a standby to the member that had the task, as an active one or as a standby."""
        former = self._former_active.get(task)
        if former is not None and task not in self._process_of(former).tasks and self._add_standby(former, task):
            return True
        former = self._least_loaded(self._former_standby.get(task, ()), task)
        return former is not None and self._add_standby(former, task)

    def _add_standby(self, member_id: str, task: Task) -> bool:
        """Give a task to a member, unless it has its share."""
        if self._count(member_id) >= self._total_share.quota:
            return False
        self._note_standby(member_id, task, self._process_of(member_id).add(member_id, task))
        return True

    def _note_standby(self, member_id: str, task: Task, count: int) -> None:
        self.standby[member_id].add(task)
        self._total_share.note(count)

    def _add_standby_to_least_loaded(self, queue: JavaPriorityQueue[_Process], task: Task) -> bool:
        process = queue.poll()
        if process is None:
            return False
        is_added = task not in process.tasks
        if is_added:
            member_id, count = process.add_to_least_loaded(task)
            self._note_standby(member_id, task, count)
        elif queue:
            is_added = self._add_standby_to_least_loaded(queue, task)
        queue.add(process)
        return is_added


def assign(
    members: Mapping[str, MemberSpec], subtopologies: Subtopologies, standby_count: int, behavior: StreamsBehavior
) -> Generator[None, None, dict[str, TaskSets]]:
    """Return the target of each member, computed in steps. ``standby_count``: replicas of each stateful task."""
    assignment = _Assignment(members, subtopologies, standby_count, behavior)
    yield
    yield from assignment.assign_active()
    if standby_count:
        yield from assignment.assign_standbys()
    yield
    return {one: TaskSets(as_tasks(assignment.active[one]), as_tasks(assignment.standby[one])) for one in members}
