"""The sweep that takes what has expired, every `offsets.retention.check.interval.ms`: judge, append, and later apply.

Theory of operation. A sweep finds what a walk over all groups would find, but looks only at groups that may have
something for it. A look at a group says when the next one is due (`Verdict.next_ms`): until then nothing of it can
expire, unless something is done to it that brings its time nearer. No look is put off for longer than a retention time,
as a commit of now expires then. Who remembers when a look is due:

- of a group that there is by its offsets alone, the table: it knows its commit times (`OffsetStore.due`);
- of a group that the registry has, the bucket of the first sweep at or after that time. Whoever changes its state or
  its subscription (EX-11, EX-21), makes it, or takes its last offset, names it as touched, and the next sweep looks at
  it (EX-33: an Empty group without offsets goes at once).

So an offset that nobody touches is looked at once or twice, and a sweep that has nothing to look at costs some
microseconds: eight days are 1,152 of them. What has to be looked at, a sweep takes in slices of some milliseconds,
between which clients are served; but on a clock that stands it takes all at once, for whoever moves it wants to see
what has become of that.

The phase of the sweeps is that of the broker's start (EX-3); what they take has been over its time by no more than the
interval (EX-4). A group whose partition has no leader or is not loaded, which has a commit in flight, or whose
tombstones can't be written, waits for the next sweep.
"""

from __future__ import annotations

import heapq
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from kproto.records.partitioning import partition_for
from kproto_server.coordinator.change_log import NO_BATCH, Change
from kproto_server.coordinator.commit import limits_of
from kproto_server.coordinator.expiration import Expiration, expiration_of
from kproto_server.coordinator.registry import simple_group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.clock import Clock, Timer
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.offsets import GroupToCheck
    from kproto_server.coordinator.pending_offsets import PendingOffsets
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

GROUPS_AT_ONCE = 256
"""Groups looked at in one slice."""
NO_PARTITION = -1
"""Of a group while there is no offsets topic."""
NO_LEADER = -1


class ExpirationTask:
    """The sweeps of one broker process. `start` puts them on its clock."""

    def __init__(self, coordinator: GroupCoordinator, clock: Clock) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._interval_ms = coordinator.settings.current.int("offsets.retention.check.interval.ms")
        self._retention_ms = limits_of(coordinator.settings.current).retention_ms
        self._simple = simple_group("") if coordinator.behavior.offsets_create_group else None
        """What every group is that there is by its offsets alone."""
        self._timer: Timer | None = None

    def start(self) -> None:
        """Sweep from now on. Again, after the state was reset: begin anew."""
        if self._timer is not None:
            self._timer.cancel()
        self._start_ms = self._clock.now_ms()
        self._buckets: dict[int, list[str]] = {}
        """Groups of the registry by the number of the sweep that is to look at them."""
        self._numbers: list[int] = []
        """Heap of the numbers that have a bucket."""
        self._again: dict[str, None] = {}
        """Groups of the registry that the last sweep could do nothing about."""
        self._due: dict[str, None] = {}
        """Groups that this sweep has to look at, beside those that the table will name."""
        self._steps: Iterator[None] = iter(())
        """What is left of this sweep."""
        if self._coordinator.behavior.is_new_coordinator:
            self._timer = self._clock.call_at(self._start_ms + self._interval_ms, self._run, in_background=True)
        else:  # not by a timer: on a clock that stands, that would come when clients have been served already
            self._run()

    def _run(self) -> None:
        now_ms = self._clock.now_ms()
        # A clock that is behind has one sweep for all that it has missed.
        next_ms = now_ms + self._interval_ms - (now_ms - self._start_ms) % self._interval_ms
        self._timer = self._clock.call_at(next_ms, self._run, in_background=True)
        self._collect_groups((now_ms - self._start_ms) // self._interval_ms)
        self._steps = self._all_steps(now_ms)
        self._continue(self._steps)

    def _continue(self, slices: Iterator[None]) -> None:
        """Do one slice, and the next ones when others had their turn; a sweep that is not over when the next one begins
        goes on as that."""
        if slices is not self._steps:
            return
        for _ in slices:
            if self._clock.mode.rate:
                in_a_moment = self._clock.now_ms() + 1
                self._clock.call_at(in_a_moment, partial(self._continue, slices), in_background=True)
                return

    def _collect_groups(self, number: int) -> None:
        """Take the groups that are not left to the table; in their order, as neighbours in memory are found faster."""
        for touched in (self._coordinator.groups.touched, self._coordinator.offsets.touched, self._again):
            self._due.update(touched)
            touched.clear()
        while self._numbers and self._numbers[0] <= number:
            self._due.update(dict.fromkeys(self._buckets.pop(heapq.heappop(self._numbers))))

    def _all_steps(self, now_ms: int) -> Iterator[None]:
        while self._due:
            group_ids = list(islice(self._due, GROUPS_AT_ONCE))
            for group_id in group_ids:
                del self._due[group_id]
            self._expire([(group_id, None) for group_id in group_ids], now_ms)
            yield
        offsets, in_registry = self._coordinator.offsets, self._coordinator.groups.get
        has_deadlines = self._coordinator.behavior.offsets_have_expire_timestamp
        found: list[GroupToCheck] = []
        done = 0
        for groups in offsets.due(now_ms - self._retention_ms):
            for group_id, all_of_it in groups:
                if in_registry(group_id) is None:
                    # Its last commit is a retention time ago: so that is what the verdict will be.
                    found.append((group_id, None if has_deadlines else all_of_it))
                elif all_of_it is None:
                    # A commit with a deadline of its own may expire before the sweep that the group waits for.
                    found.append((group_id, None))
            done += 1 + len(groups)
            if done >= GROUPS_AT_ONCE:
                self._expire(found, now_ms)
                found, done = [], 0
                yield
                if offsets is not self._coordinator.offsets:
                    return  # all groups were forgotten meanwhile
        self._expire(found, now_ms)

    def _expire(self, groups: list[GroupToCheck], now_ms: int) -> None:
        """Judge, and append tombstones, which are applied once the log has them (EX-30, EX-31).

        Of a group with all of its offsets beside it, the verdict is that they go.
        """
        coordinator, retention_ms = self._coordinator, self._retention_ms
        behavior, log = coordinator.behavior, coordinator.log
        group_of, offsets_of = coordinator.groups.get, coordinator.offsets.of_group
        partitions = coordinator.offsets_partitions
        in_flight = {change.group_id for change in log.in_flight()}
        for group_id, all_of_it in groups:
            group = group_of(group_id)
            if all_of_it is not None:
                expiration = Expiration(all_of_it, self._simple is not None, now_ms + retention_ms)
            else:
                stored = offsets_of(group_id)
                if group is None and not stored:
                    continue
                expiration = expiration_of(
                    self._simple if group is None else group, stored, now_ms, retention_ms, behavior
                )
            if group_id in in_flight:  # EX-23
                self._check_at_next_run(group_id, group, now_ms)
                continue
            if not expiration.expired and not expiration.removes_group:
                self._check_again(group_id, group, expiration.next_ms, now_ms)
                continue
            partition = partition_for(group_id, len(partitions)) if partitions else NO_PARTITION
            if coordinator.pending_offsets and partition in coordinator.pending_offsets:
                expiration = _without_pending(
                    expiration, group_id, coordinator.pending_offsets[partition], now_ms, behavior
                )
            expired, removes_group, next_ms = expiration
            if not expired and not removes_group:
                self._check_again(group_id, group, next_ms, now_ms)
                continue
            if (
                partition == NO_PARTITION
                or partitions[partition].leader == NO_LEADER
                or (coordinator.unavailable and partition in coordinator.unavailable)
            ):
                self._check_at_next_run(group_id, group, now_ms)
                continue
            # A simple group has no record of its own in the log of the old coordinator.
            generation = 0 if group is None else group.generation
            with_group = removes_group and (behavior.is_new_coordinator or generation > 0)
            settle = partial(self._apply, group_id, group, expiration, now_ms)
            if not expired and not with_group:
                settle(0)
                continue
            batch = NO_BATCH
            if log.keeps:
                from kproto_server.coordinator.offsets_log.batches import offsets_compression
                from kproto_server.coordinator.offsets_log.deletions import deletion_batch

                compression = offsets_compression(coordinator.settings.current)
                batch = deletion_batch(group_id, expired, with_group, now_ms, behavior, compression)
            log.append(partition, Change(group_id, settle), *batch)

    def _apply(self, group_id: str, group: Group | None, expiration: Expiration, now_ms: int, log_error: int) -> None:
        """The log has what a group loses, or can't have it."""
        if log_error:
            self._check_at_next_run(group_id, group, now_ms)
            return
        coordinator = self._coordinator
        offsets = coordinator.offsets
        offsets.apply_deletion(group_id, expiration.expired)
        if not expiration.removes_group:
            if group is None and self._simple is not None and not offsets.has(group_id):
                coordinator.groups.create(group_id, now_ms)  # something of it is pending
            else:
                self._check_again(group_id, group, expiration.next_ms, now_ms)
        elif coordinator.groups.get(group_id) is group:
            if group is not None:
                coordinator.groups.remove(group_id)
                coordinator.groups.touched.pop(group_id, None)
            offsets.touched.pop(group_id, None)  # nothing is left of it to look at

    def _check_at_next_run(self, group_id: str, group: Group | None, now_ms: int) -> None:
        """Have the next sweep look at a group."""
        if group is None:
            self._coordinator.offsets.check_again(group_id, now_ms - self._retention_ms)
        else:
            self._again[group_id] = None

    def _check_again(self, group_id: str, group: Group | None, due_ms: int, now_ms: int) -> None:
        """Have the first sweep at or after a time look at a group, unless one before that will."""
        if group is None:
            self._coordinator.offsets.check_again(group_id, due_ms - self._retention_ms)
            return
        number = -((self._start_ms - due_ms) // self._interval_ms)
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
    expiration: Expiration, group_id: str, pending: PendingOffsets, now_ms: int, behavior: CoordinatorBehavior
) -> Expiration:
    """A group of which an offset waits for the end of a transaction stays (EX-23, OC-57), and in the new coordinator
    the visible offset of the same partition too; the old one takes that (measured on 1.1.1 to 3.9.2)."""
    if not pending.has_group(group_id):
        return expiration
    expired = expiration.expired
    if behavior.is_new_coordinator:
        kept = (
            (topic, [p for p in partitions if (group_id, topic, p) not in pending]) for topic, partitions in expired
        )
        expired = [(topic, partitions) for topic, partitions in kept if partitions]
    return Expiration(expired, removes_group=False, next_ms=now_ms)
