"""The broker's clock (D7): real, scaled, manual, or automatic, and all timers of the broker.

Theory of operation. Broker time is the wall time at the start, plus the monotonic time since the start multiplied by
``rate``, plus the duration of every `advance`. Rate 1 is real time, rate 60 turns a second into a minute, and rate 0
stops the clock between calls of `advance`. Every timer of the broker is in a heap of the clock and fires by broker
time.

Clients do not see virtual time: their timeouts pass in real time. The timer of a client's delayed operation therefore
has a second, real deadline and fires at the earlier of the two, so that a manual clock never blocks a real client.

An automatic clock runs in real time and jumps to its next timer when the broker is idle. Background timers (periodic
tasks such as offset expiration) are in a heap of their own, because the clock does not jump to them: an idle broker
would otherwise expire all offsets at once. A jump to another timer fires the background timers that it passes.

An advance costs by what happens in it and not by its length: ten years have a million runs of the periodic tasks. The
timer of such a task has a function that says which run is the next one with an effect (`call_at`), and `advance` asks
it, as long as nothing else happens that could give a run something to do.

The clock reads no real time itself. The event loop passes it to `tick` and sleeps for at most `delay_ms`.
"""

from __future__ import annotations

import heapq
import logging
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kproto.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger("kproto")

Due = TypeVar("Due", int, float)

NEVER = float("inf")
AUTO_IDLE_MS = 10
"""Real milliseconds without activity after which an automatic clock jumps to its next timer."""


LATEST_MS = 253_402_300_799_999
"""The end of the year 9999, where the broker's time ends: dates and int64 timestamps reach so far, with any retention.
"""
RATE_MAX = 1e9
SLEEP_MAX_MS = 86_400_000.0
"""The longest delay until the next look at the timers; the poller takes no more than 24 days."""


class _ModeFields(NamedTuple):
    rate: float = 1.0
    auto: bool = False


class ClockMode(_ModeFields):
    """``rate``: broker milliseconds per real millisecond; ``auto``: jump to the next timer when idle.

    Raises:
        UsageError: the rate is no number from 0 to 1e9, or ``auto`` is no truth value.
    """

    __slots__ = ()

    def __new__(cls, rate: float = 1.0, auto: bool = False) -> ClockMode:
        if not is_number(rate) or not 0 <= rate <= RATE_MAX:
            raise UsageError(f"the rate of a clock is a number from 0 to {RATE_MAX:.0e}, not {rate!r}")
        if not isinstance(auto, bool):
            raise UsageError(f"a clock is automatic or not: True or False, not {auto!r}")
        return super().__new__(cls, float(rate), auto)

    @classmethod
    def parse(cls, text: str) -> ClockMode:
        """Return the mode that ``real``, ``manual``, ``auto`` or ``scaled:N`` names.

        Raises:
            UsageError: the text is none of these; the message lists them.
        """
        match text.split(":") if isinstance(text, str) else text:
            case ["real"]:
                return cls()
            case ["manual"]:
                return cls(rate=0.0)
            case ["auto"]:
                return cls(rate=1.0, auto=True)
            case ["scaled", factor] if _is_rate(factor):
                return cls(rate=float(factor))
        raise UsageError(
            f"clock {text!r} is not known: use real, manual, auto, or scaled:N with N above 0, at most 1e9"
        )


def _is_rate(text: str) -> bool:
    try:
        return 0 < float(text) <= RATE_MAX
    except ValueError:
        return False


def is_number(value: object) -> bool:
    """Return whether a value is a finite int or float, and no truth value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # an int that no float can hold
        return False


PURGE_MIN = 1024
"""Timers that are set before canceled ones are removed, at least: a long poll that ends early leaves one behind."""


class Timer:
    """An action and the time at which the clock calls it.

    `call_at` creates timers. A timer without an action was canceled or has fired.
    """

    __slots__ = ("action", "due_ms", "next_run_ms", "real_due_ms")

    def __init__(
        self,
        due_ms: int,
        real_due_ms: float | None,
        action: Callable[[], None],
        next_run_ms: Callable[[int, int], int] | None = None,
    ) -> None:
        self.due_ms: int = due_ms
        self.real_due_ms: float | None = real_due_ms
        self.action: Callable[[], None] | None = action
        self.next_run_ms: Callable[[int, int], int] | None = next_run_ms
        """As for `Clock.call_at`."""

    def cancel(self) -> None:
        """Remove the action; the timer stays in its heaps until it is their first."""
        self.action = None


class Clock:
    """Broker time in milliseconds since the epoch, and the timers that fire by it."""

    def __init__(self, wall_ms: float, real_ms: float, mode: ClockMode | None = None) -> None:
        """``wall_ms``: wall time since the epoch; ``real_ms``: monotonic time at the same moment."""
        self.mode: ClockMode = mode or ClockMode()
        self.real_ms: float = real_ms
        """Real time of the last `tick`."""
        self._broker_ms = float(wall_ms)
        self._active_ms = real_ms
        self.timers_set: int = 0
        """Number of timers set so far, which is also the number of the newest timer."""
        self.event_count: int = 0
        """Number of calls of `advance` and of timers fired, except those of periodic tasks: what may have happened
        between two runs of such a task in one advance."""
        self.outlives_defects: bool = False
        """Whether an exception of a timer is logged, and other timers run on, as in Kafka's scheduler."""
        self._purge_at: int = PURGE_MIN
        """`timers_set` at which canceled timers are removed from the heaps."""
        # Entries of the heaps are (due time, timer number, timer): timers with the same due time fire in the order in
        # which they were set.
        self._by_broker: list[tuple[int, int, Timer]] = []
        self._in_background: list[tuple[int, int, Timer]] = []
        self._periodic: list[tuple[int, int, Timer]] = []
        """In the background, too: timers of periodic tasks, whose runs `advance` may skip."""
        self._by_real: list[tuple[float, int, Timer]] = []
        self._quiet_until_ms: float | None = None
        """Cached real time before which no timer is due; None: not computed since a timer was set or has fired."""

    def now_ms(self) -> int:
        """Return broker time at the last `tick` or `advance`."""
        return int(self._broker_ms)

    def tick(self, real_ms: float) -> int:
        """Set real time; return broker time, which ends at `LATEST_MS`."""
        self._broker_ms += (real_ms - self.real_ms) * self.mode.rate
        self.real_ms = real_ms
        if self._broker_ms > LATEST_MS:
            self._broker_ms = float(LATEST_MS)
        return int(self._broker_ms)

    def active(self) -> int:
        """Record activity, so that an automatic clock starts its idle time again; return broker time."""
        self._active_ms = self.real_ms
        return int(self._broker_ms)

    def reset(self, wall_ms: float) -> None:
        """Set broker time to the wall time, and drop all timers."""
        for heap in (self._by_broker, self._in_background, self._periodic, self._by_real):
            for entry in heap:
                entry[2].cancel()
            heap.clear()
        self._broker_ms = float(wall_ms)
        self._quiet_until_ms = None
        self.active()

    @property
    def quiet_ms(self) -> float:
        """Real milliseconds since the last activity."""
        return self.real_ms - self._active_ms

    def advance(self, duration_ms: float, before_periodic: Callable[[], object] | None = None) -> None:
        """Advance broker time and fire the due timers in the order of their due times.

        Broker time is a timer's due time while its action runs. ``before_periodic`` is called before each run of a
        periodic task: what earlier timers have begun, and what takes no broker time, is over by then.

        Raises:
            UsageError: the duration is no finite number, negative, or ends after the year 9999.
        """
        if not is_number(duration_ms):
            raise UsageError(f"the clock advances by a finite number of milliseconds, not by {duration_ms!r}")
        if duration_ms < 0:
            raise UsageError(f"the clock can't go back by {-duration_ms} ms")
        target = self._broker_ms + duration_ms
        if target > LATEST_MS:
            raise UsageError(f"the clock can't advance by {duration_ms} ms: its time ends with the year 9999")
        self._quiet_until_ms = None
        self.event_count += 1
        while (timer := self._pop_next(target)) is not None:
            # An overdue timer must not turn time back; an action may have called `advance` itself.
            self._broker_ms = max(self._broker_ms, timer.due_ms)
            if before_periodic is not None and timer.next_run_ms is not None:
                before_periodic()
            self._run(timer)
        self._broker_ms = max(self._broker_ms, target)

    def call_at(
        self,
        due_ms: int,
        action: Callable[[], None],
        *,
        for_client: bool = False,
        in_background: bool = False,
        next_run_ms: Callable[[int, int], int] | None = None,
    ) -> Timer:
        """Call an action at a broker time; return its timer.

        Args:
            due_ms: broker time of the call.
            action: called once, by `run_due` or `advance`.
            for_client: call the action also when the same duration has passed in real time.
            in_background: an automatic clock does not jump to this timer.
            next_run_ms: for a periodic task, in the background: `advance` calls it with the due time and a later time,
                until which no other timer fires, and fires the timer at the time that it returns. Runs between the two
                have no effect, as long as nothing else happens.
        """
        self._quiet_until_ms = None
        real = self.real_ms + max(0.0, due_ms - self._broker_ms) if for_client else None
        timer = Timer(due_ms, real, action, next_run_ms)
        order = self.timers_set = self.timers_set + 1
        background = self._in_background if next_run_ms is None else self._periodic
        if order >= self._purge_at:
            self._purge()
        heapq.heappush(background if in_background else self._by_broker, (due_ms, order, timer))
        # At rate 1 the real deadline is never before the due time, so the second heap is not needed.
        if real is not None and self.mode.rate != 1.0:
            heapq.heappush(self._by_real, (real, order, timer))
        return timer

    def _purge(self) -> None:
        """Remove canceled and fired timers, so that the heaps are never twice as large as the timers that are set."""
        for heap in (self._by_broker, self._in_background, self._periodic):
            _purge(heap)
        _purge(self._by_real)
        self._purge_at = self.timers_set + max(PURGE_MIN, self.entry_count)

    @property
    def entry_count(self) -> int:
        """The number of entries in all heaps, those of canceled timers included."""
        return len(self._by_broker) + len(self._in_background) + len(self._periodic) + len(self._by_real)

    def run_due(self, first_timers: float = NEVER) -> None:
        """Fire the due timers.

        ``first_timers`` excludes timers with a higher number. The event loop passes `timers_set` as of the start of its
        iteration, so that timers which the iteration sets fire in the next one at the earliest.
        """
        if self._quiet_until_ms is not None and self.real_ms < self._quiet_until_ms:
            return
        self._quiet_until_ms = None
        while (timer := self._pop_broker(self._broker_ms, first_timers)) is not None:
            self._run(timer)
        while (due := _first(self._by_real)) is not None and due[0] <= self.real_ms and due[1] <= first_timers:
            self._run(heapq.heappop(self._by_real)[2])
        # The jump counts as activity: the timers that it fires have the idle time to cause further requests.
        if self.mode.auto and self.quiet_ms >= AUTO_IDLE_MS:
            next_due = _first(self._by_broker)
            if next_due is not None:
                self.advance(max(0.0, min(next_due[0], LATEST_MS) - self._broker_ms))
                self.active()

    def delay_ms(self) -> float | None:
        """Return the real milliseconds until a timer can be due; None: only `advance` can make a timer due."""
        if self._quiet_until_ms is None:
            delay_ms = self._work_out_delay_ms()
            self._quiet_until_ms = NEVER if delay_ms is None else self.real_ms + delay_ms
        return None if self._quiet_until_ms == NEVER else max(0.0, self._quiet_until_ms - self.real_ms)

    def _work_out_delay_ms(self) -> float | None:
        # The minimum of three times: the first timer by broker time, an automatic clock's next jump, and the first real
        # deadline of a client.
        delays = []
        due = self._next_heap()
        if due and due[0][0] <= self._broker_ms:
            return 0.0
        if due and self.mode.rate > 0 and due[0][0] <= LATEST_MS:
            delays.append((due[0][0] - self._broker_ms) / self.mode.rate)
        if self.mode.auto and _first(self._by_broker) is not None:
            delays.append(AUTO_IDLE_MS - self.quiet_ms)
        real_due = _first(self._by_real)
        if real_due is not None:
            delays.append(real_due[0] - self.real_ms)
        return max(0.0, min(*delays, SLEEP_MAX_MS)) if delays else None

    def _next_heap(self) -> list[tuple[int, int, Timer]]:
        """Return the broker-time heap with the earliest timer; an empty heap if no timer is set."""
        heap = self._by_broker
        for other in (heap, self._in_background, self._periodic):
            first = _first(other)
            if first is not None and (not heap or first < heap[0]):
                heap = other
        return heap

    def _pop_next(self, until_ms: float) -> Timer | None:
        """Remove and return the earliest timer of an advance; runs of periodic tasks without an effect are skipped."""
        periodic = self._periodic
        while (first := _first(periodic)) is not None:
            due_ms, order, timer = first
            others = [other[0] for heap in (self._by_broker, self._in_background) if (other := _first(heap))]
            quiet_until_ms = min(int(until_ms), *others) if others else int(until_ms)
            if due_ms > quiet_until_ms or timer.next_run_ms is None:
                break
            run_ms = timer.next_run_ms(due_ms, quiet_until_ms)
            if run_ms <= due_ms:
                break
            timer.due_ms = run_ms
            heapq.heapreplace(periodic, (run_ms, order, timer))
        return self._pop_broker(until_ms)

    def _pop_broker(self, until_ms: float, first_timers: float = NEVER) -> Timer | None:
        """Remove and return the earliest timer that is due by broker time ``until_ms``; None: there is none."""
        heap = self._next_heap()
        is_due = heap and heap[0][0] <= until_ms and heap[0][1] <= first_timers
        return heapq.heappop(heap)[2] if is_due else None

    def _run(self, timer: Timer) -> None:
        # A client's timer is in two heaps. Without its action, it does not fire a second time from the other heap.
        action, timer.action = timer.action, None
        if action is None:
            return
        if timer.next_run_ms is None:
            self.event_count += 1
        try:
            action()
        except Exception:
            if not self.outlives_defects:
                raise
            logger.exception("timer")


def _purge(heap: list[tuple[Due, int, Timer]]) -> None:
    """Remove canceled and fired timers from a heap."""
    heap[:] = [entry for entry in heap if entry[2].action is not None]
    heapq.heapify(heap)


def _first(heap: list[tuple[Due, int, Timer]]) -> tuple[Due, int, Timer] | None:
    """Drop canceled and fired timers from the top of a heap; return its first entry."""
    while heap and heap[0][2].action is None:
        heapq.heappop(heap)
    return heap[0] if heap else None


class Steps:
    """The steps of a task's run, a millisecond after each other, so that clients are served in between.

    On a clock that stands still all are done at once: the caller that advances the clock expects to see the result.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: Iterator[None] | None = None
        """What is left of the run."""

    def begin(self, steps: Iterator[None]) -> None:
        """Do the first step, and schedule the next; what is left of the run before is dropped."""
        self._left = steps
        self._continue(steps)

    def stop(self) -> None:
        """Drop what is left of the run."""
        self._left = None

    def _continue(self, steps: Iterator[None]) -> None:
        if steps is not self._left:
            return
        for _ in steps:
            if self._clock.mode.rate:
                soon_ms = self._clock.now_ms() + 1
                self._clock.call_at(soon_ms, partial(self._continue, steps), in_background=True)
                return


class PeriodicTask:
    """Calls an action periodically, in the background, from `start` on.

    Its effect depends on the time of a run only: a run does what those before it would have done. So in an advance, of
    the runs with nothing in between only the last one is made.
    """

    def __init__(self, clock: Clock, interval_ms: int, action: Callable[[int], Iterator[None] | None]) -> None:
        """``action``: called with broker time; a generator is continued a millisecond after each ``yield``."""
        self._clock = clock
        self._interval_ms = interval_ms
        self._action = action
        self._timer: Timer | None = None
        self._steps = Steps(clock)

    def start(self) -> None:
        """Start the timer of the next run; a second call, after the clock was reset, starts it again."""
        self.stop()
        due_ms = self._clock.now_ms() + self._interval_ms
        self._timer = self._clock.call_at(due_ms, self._run, in_background=True, next_run_ms=self._next_run_ms)

    def stop(self) -> None:
        """Stop the timer, and drop what is left of a run."""
        self._steps.stop()
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        try:
            steps = self._action(self._clock.now_ms())
        finally:
            self.start()
        if steps is not None:
            self._steps.begin(steps)

    def _next_run_ms(self, due_ms: int, quiet_until_ms: int) -> int:
        return quiet_until_ms - (quiet_until_ms - due_ms) % self._interval_ms
