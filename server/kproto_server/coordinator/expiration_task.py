"""The expiration task: every `offsets.retention.check.interval.ms` it deletes the offsets and groups that are expired.

Theory of operation. A run finds what a check of all groups would find, but checks only groups that may have something
expired. A check says when the group has to be checked again (`Expiration.next_ms`): nothing of it expires before that
time, unless a change brings the time forward. No check is later than a retention time from now, as a commit of now
expires then. The next check of a group is known

- for a group that exists by its offsets alone: to the table, which has its commit timestamps
  (`OffsetStore.groups_to_check`);
- for a registered group: to this task, which has a bucket of groups for each later run. A change of the group's state
  or subscription (EX-11, EX-21), its creation, and the deletion of its last offset touch the group, and the next run
  checks each touched group (EX-33: an Empty group without offsets is deleted at once). A commit with a deadline of its
  own makes the table name the group.

So an offset without changes is checked once or twice in its life, and a run with nothing to check takes microseconds:
eight days have 1,152 runs. A run with many groups is done in steps of a few milliseconds, so that clients are served in
between. On a clock that stands still it is done in one step, since the caller that advances the clock expects to see
the result.

The phase of the runs is that of the broker's start (EX-3), so an offset is deleted at most one interval after its
deadline (EX-4). A group is left to the next run while its partition has no leader or is not loaded, while it has a
commit in flight, or if its tombstones can't be written.
"""

from __future__ import annotations

import heapq
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from kproto.records.partitioning import partition_for
from kproto_server.clock import Steps
from kproto_server.cluster.topics import NO_LEADER
from kproto_server.coordinator.commit import limits_of
from kproto_server.coordinator.deletion import append_tombstones
from kproto_server.coordinator.expiration import Expiration, expiration_of
from kproto_server.coordinator.registry import simple_group
from kproto_server.coordinator.transactional_offsets import keeps_group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.clock import Clock, Timer
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.offsets import GroupToCheck
    from kproto_server.coordinator.pending_offsets import PendingOffsets
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

GROUPS_PER_STEP = 256
NO_PARTITION = -1
"""The offsets partition of a group while there is no offsets topic."""


class ExpirationTask:
    """The expiration task of one broker process. `start` schedules it on the broker's clock."""

    def __init__(self, coordinator: GroupCoordinator, clock: Clock) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._interval_ms = coordinator.settings.current.int("offsets.retention.check.interval.ms")
        self._retention_ms = limits_of(coordinator.settings.current).retention_ms
        self._simple = simple_group("") if coordinator.behavior.offsets_create_group else None
        """Stands for each group that exists by its offsets alone."""
        self._timer: Timer | None = None
        self._steps = Steps(clock)
        """Of this run. What is left when the next one begins is continued by that, as `_to_check` stays."""

    def start(self) -> None:
        """Schedule the runs; a second call, after the coordinator was reset, drops the schedule of the first."""
        if self._timer is not None:
            self._timer.cancel()
        self._start_ms = self._clock.now_ms()
        self._buckets: dict[int, list[str]] = {}
        """Registered groups by the number of the run that checks them."""
        self._numbers: list[int] = []
        """A heap of the numbers that have a bucket."""
        self._postponed: dict[str, None] = {}
        """Groups that the last run had to leave to the next."""
        self._events_seen = -1
        """`Clock.event_count` at the last run."""
        self._to_check: dict[str, None] = {}
        """Groups that this run has to check, besides those that the table names."""
        self._steps.stop()
        if self._coordinator.behavior.is_new_coordinator:
            self._set_timer(self._start_ms + self._interval_ms)
        else:  # without a timer: on a clock that stands still, a timer comes after the first requests
            self._run()

    def _run(self) -> None:
        now_ms = self._clock.now_ms()
        # A clock that is late has one run for all that it has missed.
        next_ms = now_ms + self._interval_ms - (now_ms - self._start_ms) % self._interval_ms
        self._set_timer(next_ms)
        self._events_seen = self._clock.event_count
        self._collect_groups((now_ms - self._start_ms) // self._interval_ms)
        self._steps.begin(self._all_steps(now_ms))

    def _set_timer(self, due_ms: int) -> None:
        self._timer = self._clock.call_at(due_ms, self._run, in_background=True, next_run_ms=self._next_run_ms)

    def _next_run_ms(self, due_ms: int, quiet_until_ms: int) -> int:
        """Return when the first run is that has something to do, or that is not before ``quiet_until_ms``.

        A group that was postponed waits for an event other than time.
        """
        coordinator = self._coordinator
        if self._to_check or coordinator.groups.touched or coordinator.offsets.touched:
            return due_ms
        if self._postponed and self._events_seen != self._clock.event_count:
            return due_ms
        has_work_ms = coordinator.offsets.oldest_ms + self._retention_ms
        if self._numbers:
            has_work_ms = min(has_work_ms, self._start_ms + self._numbers[0] * self._interval_ms)
        since_start_ms = min(has_work_ms, quiet_until_ms) - self._start_ms
        return self._start_ms - (-since_start_ms // self._interval_ms) * self._interval_ms  # rounded up

    def _collect_groups(self, number: int) -> None:
        """Collect the groups that the table does not name. Their order is kept, as neighbors are found faster."""
        for groups in (self._coordinator.groups.touched, self._coordinator.offsets.touched, self._postponed):
            self._to_check.update(groups)
            groups.clear()
        while self._numbers and self._numbers[0] <= number:
            self._to_check.update(dict.fromkeys(self._buckets.pop(heapq.heappop(self._numbers))))

    def _all_steps(self, now_ms: int) -> Iterator[None]:
        while self._to_check:
            group_ids = list(islice(self._to_check, GROUPS_PER_STEP))
            for group_id in group_ids:
                del self._to_check[group_id]
            self._expire([(group_id, None) for group_id in group_ids], now_ms)
            yield
        offsets, registered = self._coordinator.offsets, self._coordinator.groups.get
        has_deadlines = self._coordinator.behavior.offsets_have_expire_timestamp
        found: list[GroupToCheck] = []
        done = 0
        for groups in offsets.groups_to_check(now_ms - self._retention_ms):
            for group_id, all_offsets in groups:
                if registered(group_id) is None:
                    # The last commit is a retention time ago: all offsets are expired, without another look at each.
                    found.append((group_id, None if has_deadlines else all_offsets))
                elif all_offsets is None:
                    # A commit with a deadline of its own may expire before the run that has the group's bucket.
                    found.append((group_id, None))
            done += 1 + len(groups)
            if done >= GROUPS_PER_STEP:
                self._expire(found, now_ms)
                found, done = [], 0
                yield
                if offsets is not self._coordinator.offsets:
                    return  # the offsets topic was deleted between two steps, and all groups with it
        self._expire(found, now_ms)

    def _expire(self, groups: list[GroupToCheck], now_ms: int) -> None:
        """Check groups, and append tombstones for what is expired (EX-30, EX-31).

        A group that comes with all of its offsets is not checked: they are expired.
        """
        coordinator, retention_ms = self._coordinator, self._retention_ms
        behavior, log = coordinator.behavior, coordinator.log
        group_of, offsets_of = coordinator.groups.get, coordinator.offsets.of_group
        partitions = coordinator.offsets_partitions
        in_flight = {change.group_id for change in log.in_flight()}
        for group_id, all_offsets in groups:
            group = group_of(group_id)
            if all_offsets is not None:
                expiration = Expiration(all_offsets, self._simple is not None, now_ms + retention_ms)
            else:
                stored = offsets_of(group_id)
                if group is None and not stored:
                    continue
                checked = self._simple if group is None else group
                expiration = expiration_of(checked, stored, now_ms, retention_ms, behavior)
            if group_id in in_flight:  # EX-23
                self._postpone(group_id)
                continue
            if not expiration.expired and not expiration.removes_group:
                self._check_again(group_id, group, expiration.next_ms, now_ms)
                continue
            partition = partition_for(group_id, len(partitions)) if partitions else NO_PARTITION
            pending = coordinator.pending_offsets.get(partition)
            if pending is not None and keeps_group(pending, group_id, behavior):
                self._postpone(group_id)
                expiration = _without_pending(expiration, group_id, pending, behavior)
                if not expiration.expired and not expiration.removes_group:
                    self._check_again(group_id, group, expiration.next_ms, now_ms)
                    continue
            if (
                partition == NO_PARTITION
                or partitions[partition].leader == NO_LEADER
                or partition in coordinator.unavailable
            ):
                self._postpone(group_id)
                continue
            self._delete(group_id, group, expiration, partition, now_ms)

    def _delete(self, group_id: str, group: Group | None, expiration: Expiration, partition: int, now_ms: int) -> None:
        """Append the tombstones of a group; apply the deletion once the log has them."""
        coordinator = self._coordinator
        behavior = coordinator.behavior
        # The old coordinator has no group record for a simple group, so that there is nothing to take back.
        generation = 0 if group is None else group.generation
        with_group = expiration.removes_group and (behavior.is_new_coordinator or generation > 0)
        settle = partial(self._apply, group_id, group, expiration, now_ms)
        if not expiration.expired and not with_group:
            coordinator.groups.remove(group_id)
            settle(0)
            return
        removed = group if expiration.removes_group else None
        append_tombstones(
            coordinator, partition, group_id, expiration.expired, now_ms, settle, removed, removes_group=with_group
        )

    def _apply(self, group_id: str, group: Group | None, expiration: Expiration, now_ms: int, log_error: int) -> None:
        """Apply a deletion that the log has; if the write failed, leave the group to the next run."""
        if log_error:
            self._postpone(group_id)
            return
        coordinator = self._coordinator
        offsets = coordinator.offsets
        offsets.apply_deletion(group_id, expiration.expired)
        if not expiration.removes_group:
            if group is None and self._simple is not None and not offsets.has(group_id):
                coordinator.groups.create(group_id, now_ms)  # it has a pending offset
            else:
                self._check_again(group_id, group, expiration.next_ms, now_ms)
        elif coordinator.groups.get(group_id) is None:
            coordinator.groups.touched.pop(group_id, None)
            offsets.touched.pop(group_id, None)  # nothing of the group is left to check

    def _postpone(self, group_id: str) -> None:
        """Have the next run check a group."""
        self._postponed[group_id] = None

    def _check_again(self, group_id: str, group: Group | None, next_ms: int, now_ms: int) -> None:
        """Have the first run at or after ``next_ms`` check a group, unless an earlier run will."""
        if group is None:
            self._coordinator.offsets.check_again(group_id, next_ms - self._retention_ms)
            return
        number = -((self._start_ms - next_ms) // self._interval_ms)  # rounded up
        current = (now_ms - self._start_ms) // self._interval_ms
        if current < group.next_check_number <= number:
            return
        group.next_check_number = number
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = []
            heapq.heappush(self._numbers, number)
        bucket.append(group_id)


def _without_pending(
    expiration: Expiration, group_id: str, pending: PendingOffsets, behavior: CoordinatorBehavior
) -> Expiration:
    """Return what expires of a group with offsets of an open transaction: the group stays (EX-23, OC-57).

    In the new coordinator the visible offset of the same partition stays too; the old one deletes it (measured on 1.1.1
    to 3.9.2).
    """
    expired = expiration.expired
    if behavior.is_new_coordinator:
        kept = (
            (topic, [p for p in partitions if (group_id, topic, p) not in pending]) for topic, partitions in expired
        )
        expired = [(topic, partitions) for topic, partitions in kept if partitions]
    return Expiration(expired, removes_group=False, next_ms=expiration.next_ms)
