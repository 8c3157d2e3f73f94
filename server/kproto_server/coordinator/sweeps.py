"""The sweep that takes what has expired, every `offsets.retention.check.interval.ms`: judge, append, and later apply.

Theory of operation. A sweep finds what a walk over all groups would find, but looks only at groups that may have
something for it. A look at a group says when the next one is due (`Verdict.next_ms`), and the group waits in the bucket
of the first sweep at or after that. Until then nothing of it can expire, unless something is done to it that brings its
time nearer; whoever does that names the group as touched, and the next sweep looks at it:

- it is made, or gets its first offset; it loses its last (EX-33: an Empty group without offsets goes at once);
- it changes its state or its subscription (EX-11, EX-21);
- offsets are committed that expire sooner than a retention time after their commit: by a retention time of their own,
  or by a timestamp of the client's (`OffsetStore.apply_commit`).

All other commits expire a retention time after the look or later, which is why no look is put off longer than that. So
an offset that nobody touches is looked at twice, once when it is new and once when it goes, and a sweep that has
nothing to look at costs a microsecond: eight days are 1,152 of them.

The phase of the sweeps is that of the broker's start (EX-3); what they take has been over its time by no more than the
interval (EX-4). A group whose partition has no leader or is not loaded, which has a commit in flight, or whose
tombstones can't be written, waits for the next sweep.
"""

from __future__ import annotations

import heapq
from functools import partial
from typing import TYPE_CHECKING

from kproto_server.coordinator.change_log import NO_BATCH, Change
from kproto_server.coordinator.commit import limits_of
from kproto_server.coordinator.expiry import judge
from kproto_server.coordinator.partitioning import OFFSETS_TOPIC, partition_for

if TYPE_CHECKING:
    from kproto_server.clock import Clock, Timer
    from kproto_server.coordinator.expiry import Verdict
    from kproto_server.coordinator.groups import Group
    from kproto_server.state import BrokerState

NO_PARTITION = -1
"""Of a group while there is no offsets topic."""
NO_LEADER = -1


class Sweeps:
    """The sweeps of one broker process. `start` puts them on its clock."""

    def __init__(self, state: BrokerState, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._interval_ms = state.settings.int("offsets.retention.check.interval.ms")
        self._retention_ms = limits_of(state.settings).retention_ms
        self._timer: Timer | None = None

    def start(self) -> None:
        """Sweep from now on. Again, after the state was reset: begin anew."""
        if self._timer is not None:
            self._timer.cancel()
        self._start_ms = self._clock.now_ms()
        self._buckets: dict[int, list[str]] = {}
        """Groups by the number of the sweep that is to look at them."""
        self._numbers: list[int] = []
        """Heap of the numbers that have a bucket."""
        self._bare: dict[str, int] = {}
        """The sweep that offsets without a group wait for; a group knows its own."""
        self._again: dict[str, None] = {}
        """Groups that the last sweep could do nothing about."""
        if self._state.profile.new_group_coordinator:
            self._timer = self._clock.call_at(self._start_ms + self._interval_ms, self._fire, in_background=True)
        else:  # not by a timer: on a clock that stands, that would come when clients have been served already
            self._fire()

    def _fire(self) -> None:
        now_ms = self._clock.now_ms()
        # A clock that is behind has one sweep for all that it has missed.
        next_ms = now_ms + self._interval_ms - (now_ms - self._start_ms) % self._interval_ms
        self._timer = self._clock.call_at(next_ms, self._fire, in_background=True)
        due = self._due((now_ms - self._start_ms) // self._interval_ms)
        self._sweep(list(due), now_ms)

    def _due(self, number: int) -> dict[str, None]:
        """Take the groups that this sweep has to look at; in their order, as neighbours in memory are found faster."""
        due: dict[str, None] = {}
        for touched in (self._state.groups.touched, self._state.offsets.touched, self._again):
            due.update(touched)
            touched.clear()
        while self._numbers and self._numbers[0] <= number:
            due.update(dict.fromkeys(self._buckets.pop(heapq.heappop(self._numbers))))
        return due

    def _sweep(self, group_ids: list[str], now_ms: int) -> None:
        """Judge, and append tombstones, which are applied once the log has them (EX-30, EX-31)."""
        state, retention_ms = self._state, self._retention_ms
        profile, log = state.profile, state.log
        group_of, offsets_of = state.groups.get, state.offsets.of_group
        topic = state.cluster.topics.get(OFFSETS_TOPIC)
        partitions = [] if topic is None else topic.partitions
        in_flight = {change.group_id for change in log.in_flight()}
        for group_id in group_ids:
            group, stored = group_of(group_id), offsets_of(group_id)
            if group is None and not stored:
                self._bare.pop(group_id, None)
                continue
            if group_id in in_flight:  # EX-23
                self._again[group_id] = None
                continue
            verdict = judge(group, stored, now_ms, retention_ms, profile)
            expired, removes_group, next_ms = verdict
            if not expired and not removes_group:
                self._look_again(group_id, group, next_ms, now_ms)
                continue
            partition = partition_for(group_id, len(partitions)) if partitions else NO_PARTITION
            if (
                partition == NO_PARTITION
                or partitions[partition].leader == NO_LEADER
                or (state.unavailable and partition in state.unavailable)
            ):
                self._again[group_id] = None
                continue
            # A simple group has no record of its own in the log of the old coordinator.
            with_group = removes_group and group is not None and (profile.new_group_coordinator or group.generation > 0)
            settle = partial(self._removed, group_id, group, verdict, now_ms)
            if not expired and not with_group:
                settle(0)
                continue
            batch = NO_BATCH
            if log.keeps:
                from kproto_server.coordinator.log_records.deletions import deletion_batch

                batch = deletion_batch(group_id, expired, with_group, now_ms, profile)
            log.append(partition, Change(group_id, settle), *batch)

    def _removed(self, group_id: str, group: Group | None, verdict: Verdict, now_ms: int, log_error: int) -> None:
        """The log has what a group loses, or can't have it."""
        if log_error:
            self._again[group_id] = None
            return
        state = self._state
        offsets = state.offsets
        offsets.apply_deletion(group_id, verdict.expired)
        if not verdict.removes_group:
            self._look_again(group_id, group, verdict.next_ms, now_ms)
        elif state.groups.get(group_id) is group:
            state.groups.remove(group_id)
            offsets.touched.pop(group_id, None)  # nothing is left of it to look at

    def _look_again(self, group_id: str, group: Group | None, due_ms: int, now_ms: int) -> None:
        """Put a group into the bucket of the first sweep at or after a time, unless one before that has it."""
        number = -((self._start_ms - due_ms) // self._interval_ms)
        current = (now_ms - self._start_ms) // self._interval_ms
        waits_for = self._bare.get(group_id, 0) if group is None else group.sweep_number
        if current < waits_for <= number:
            return
        if group is None:
            self._bare[group_id] = number
        else:
            group.sweep_number = number
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = []
            heapq.heappush(self._numbers, number)
        bucket.append(group_id)
