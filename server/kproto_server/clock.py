"""Time is one object (D7): real, scaled, manual, or advancing by itself when nothing happens.

Theory of operation. Broker time is wall time at the start, plus the monotonic time since then multiplied by ``rate``,
plus every `advance`. Rate 1 is real, 60 makes a minute of a second, 0 is a clock that only a test moves. Every timer
of the broker stands in this object's heap and fires by broker time.

A client is not in on the game: it has a socket and a real timeout. So a timer set for a client's parked request is
also given its real delay, and fires by whichever comes first: a manual clock never freezes a real client.

The object is pure: real time is passed in by the shell (`tick`), which asks `delay_ms` how long it may sleep.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Due = TypeVar("Due", int, float)

NEVER = float("inf")
AUTO_IDLE_MS = 10
"""How long nothing must have happened, in real milliseconds, before an auto-advancing clock jumps to its next timer."""


class ClockMode(NamedTuple):
    """``rate``: broker milliseconds a real one; ``auto``: jump to the next timer when idle."""

    rate: float = 1.0
    auto: bool = False

    @classmethod
    def parse(cls, text: str) -> ClockMode:
        """Read ``real``, ``manual``, ``auto`` or ``scaled:N``.

        Raises:
            ValueError: with one line that names the forms.
        """
        match text.split(":"):
            case ["real"]:
                return cls()
            case ["manual"]:
                return cls(rate=0.0)
            case ["auto"]:
                return cls(rate=1.0, auto=True)
            case ["scaled", factor] if _positive(factor):
                return cls(rate=float(factor))
        raise ValueError(f"clock {text!r} is not known: use real, manual, auto, or scaled:N with N above 0")


def _positive(text: str) -> bool:
    try:
        return 0 < float(text) < 1e9
    except ValueError:
        return False


class Timer:
    """One thing to do at a time; `cancel` makes it nothing."""

    __slots__ = ("action", "due_ms", "real_due_ms")

    def __init__(self, due_ms: int, real_due_ms: float | None, action: Callable[[], None]) -> None:
        self.due_ms: int = due_ms
        self.real_due_ms: float | None = real_due_ms
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class Clock:
    """Broker time in milliseconds since the epoch, and the timers that go by it."""

    def __init__(self, wall_ms: float, real_ms: float, mode: ClockMode | None = None) -> None:
        """``wall_ms``: since the epoch; ``real_ms``: a monotonic reading of the same moment."""
        self.mode: ClockMode = mode or ClockMode()
        self.real_ms: float = real_ms
        """The last reading of real time."""
        self._broker_ms = float(wall_ms)
        self._active_ms = real_ms
        self.timers_set: int = 0
        """How many timers were set so far."""
        self._by_broker: list[tuple[int, int, Timer]] = []
        self._in_background: list[tuple[int, int, Timer]] = []
        self._by_real: list[tuple[float, int, Timer]] = []
        self._quiet_until_ms: float | None = None
        """Real time before which nothing is due, as far as it was worked out; None: it has to be."""

    def now_ms(self) -> int:
        """Broker time as of the last `tick`."""
        return int(self._broker_ms)

    def tick(self, real_ms: float) -> int:
        """Take note of real time; return broker time."""
        self._broker_ms += (real_ms - self.real_ms) * self.mode.rate
        self.real_ms = real_ms
        return int(self._broker_ms)

    def active(self) -> int:
        """Something happened: an auto-advancing clock waits again before it jumps. Return broker time."""
        self._active_ms = self.real_ms
        return int(self._broker_ms)

    @property
    def quiet_ms(self) -> float:
        """Real milliseconds since something happened."""
        return self.real_ms - self._active_ms

    def advance(self, duration_ms: float) -> None:
        """Move broker time forward; due timers fire in the order of their times, each at its own time.

        Raises:
            ValueError: time does not go back.
        """
        if duration_ms < 0:
            raise ValueError(f"the clock can't go back by {-duration_ms} ms")
        self._quiet_until_ms = None
        target = self._broker_ms + duration_ms
        while (timer := self._pop_broker(target)) is not None:
            self._broker_ms = max(self._broker_ms, timer.due_ms)
            self._run(timer)
        self._broker_ms = max(self._broker_ms, target)

    def call_at(
        self, due_ms: int, action: Callable[[], None], *, for_client: bool = False, in_background: bool = False
    ) -> Timer:
        """Do something at a broker time.

        Args:
            for_client: at the latest when as much real time has passed.
            in_background: housekeeping, which an auto-advancing clock does not jump to.
        """
        self._quiet_until_ms = None
        real = self.real_ms + max(0.0, due_ms - self._broker_ms) if for_client else None
        timer = Timer(due_ms, real, action)
        order = self.timers_set = self.timers_set + 1
        heapq.heappush(self._in_background if in_background else self._by_broker, (due_ms, order, timer))
        if real is not None and self.mode.rate != 1.0:
            heapq.heappush(self._by_real, (real, order, timer))
        return timer

    def run_due(self, first_timers: float = NEVER) -> None:
        """Fire what is due; of the timers that were ever set only the first so many."""
        if self._quiet_until_ms is not None and self.real_ms < self._quiet_until_ms:
            return
        self._quiet_until_ms = None
        while (timer := self._pop_broker(self._broker_ms, first_timers)) is not None:
            self._run(timer)
        while (due := _first(self._by_real)) is not None and due[0] <= self.real_ms and due[1] <= first_timers:
            self._run(heapq.heappop(self._by_real)[2])
        if self.mode.auto and self.quiet_ms >= AUTO_IDLE_MS:
            next_due = _first(self._by_broker)
            if next_due is not None:
                self.advance(max(0.0, next_due[0] - self._broker_ms))
                self.active()

    def delay_ms(self) -> float | None:
        """Real milliseconds until something may be due; None: no timer is set."""
        if self._quiet_until_ms is None:
            delay_ms = self._work_out_delay_ms()
            self._quiet_until_ms = NEVER if delay_ms is None else self.real_ms + delay_ms
        return None if self._quiet_until_ms == NEVER else max(0.0, self._quiet_until_ms - self.real_ms)

    def _work_out_delay_ms(self) -> float | None:
        delays = []
        due = self._next_heap()
        if due and due[0][0] <= self._broker_ms:
            return 0.0
        if due and self.mode.rate > 0:
            delays.append((due[0][0] - self._broker_ms) / self.mode.rate)
        if self.mode.auto and _first(self._by_broker) is not None:
            delays.append(AUTO_IDLE_MS - self.quiet_ms)
        real_due = _first(self._by_real)
        if real_due is not None:
            delays.append(real_due[0] - self.real_ms)
        return max(0.0, min(delays)) if delays else None

    def _next_heap(self) -> list[tuple[int, int, Timer]]:
        """Return the heap whose first timer is due before that of the other; empty if no timer is set."""
        first, background = _first(self._by_broker), _first(self._in_background)
        if first is None or (background is not None and background < first):
            return self._in_background
        return self._by_broker

    def _pop_broker(self, until_ms: float, first_timers: float = NEVER) -> Timer | None:
        heap = self._next_heap()
        is_due = heap and heap[0][0] <= until_ms and heap[0][1] <= first_timers
        return heapq.heappop(heap)[2] if is_due else None

    def _run(self, timer: Timer) -> None:
        action, timer.action = timer.action, None
        if action is not None:
            action()


def _first(heap: list[tuple[Due, int, Timer]]) -> tuple[Due, int, Timer] | None:
    """Return the first timer of a heap, after those that were cancelled or have fired are gone."""
    while heap and heap[0][2].action is None:
        heapq.heappop(heap)
    return heap[0] if heap else None
