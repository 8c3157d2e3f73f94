"""A line for people that shows how far a consumer has caught up."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from kproto.client.decisions.events import CatchUpDone, CatchUpProgress, CatchUpStarted, CatchUpStopped, Event
from kproto.client.topic_partitions import PartitionKey

TERMINAL_INTERVAL_S = 0.5
"""Shortest time between two states of the line on a terminal."""
LINE_INTERVAL_S = 10.0
"""Shortest time between two lines elsewhere, for example in a file."""
BAR_WIDTH = 20
ERASE_LINE = "\r\x1b[K"


@dataclass(slots=True)
class _PartitionState:
    """The catch-up of one partition."""

    records: int
    records_left: int
    records_per_s: float = 0.0


class ProgressLine:
    """A callback for ``event_cb`` that shows the progress of all catch-ups of a consumer in one line.

    On a terminal the line is refreshed, at most twice a second. Elsewhere a line is printed every ten seconds. The last
    line says what is read.

    Args:
        stream: where the line is printed, by default `sys.stderr`.
        clock: returns the time in seconds.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream: TextIO = sys.stderr if stream is None else stream
        self._clock = clock
        self._partitions: dict[PartitionKey, _PartitionState] = {}
        self._started_at = 0.0
        self._next_print_at = 0.0
        self._is_stopped = False
        """Whether a catch-up ended before its last record."""

    def __call__(self, event: Event) -> None:
        """Print the line if the event changes it and the time for it has come."""
        match event:
            case CatchUpStarted():
                if not self._partitions:
                    self._started_at = self._next_print_at = self._clock()
                    self._is_stopped = False
                left = event.records_left
                self._partitions[event.topic, event.partition] = _PartitionState(left, left)
            case CatchUpProgress():
                state = self._partitions.get((event.topic, event.partition))
                if state is not None:
                    state.records_left, state.records_per_s = event.records_left, event.records_per_s
            case CatchUpDone():
                self._end(event.topic, event.partition, 0)
            case CatchUpStopped():
                self._is_stopped = True
                self._end(event.topic, event.partition, event.records_left)
            case _:
                return
        self._print()

    def _end(self, topic: str, partition: int, not_read: int) -> None:
        """Count what is read of a partition as a finished catch-up."""
        state = self._partitions.get((topic, partition))
        if state is not None:
            self._partitions[topic, partition] = _PartitionState(state.records - not_read, 0)

    def _print(self) -> None:
        states, now = self._partitions.values(), self._clock()
        records, left = sum(each.records for each in states), sum(each.records_left for each in states)
        is_done = not left
        if not states or (now < self._next_print_at and not is_done):
            return
        is_terminal = self._stream.isatty()
        self._next_print_at = now + (TERMINAL_INTERVAL_S if is_terminal else LINE_INTERVAL_S)
        if is_done:
            result = "stopped after" if self._is_stopped else "caught up with"
            noun = "record" if records == 1 else "records"
            text = f"{result} {records:,} {noun} in {_duration(now - self._started_at)}"
            self._partitions.clear()
        else:
            text = _text(records, left, sum(each.records_per_s for each in states if each.records_left))
        begin, end = (ERASE_LINE, "\n" if is_done else "") if is_terminal else ("", "\n")
        self._stream.write(f"{begin}{text}{end}")
        self._stream.flush()


def _text(records: int, left: int, per_s: float) -> str:
    share = (records - left) / records
    bar = "#" * int(share * BAR_WIDTH)
    time_left = f"{_duration(left / per_s)} left" if per_s > 0 else "waiting"
    return f"catching up [{bar:-<{BAR_WIDTH}}] {share:4.0%}  {left:,} records left, {per_s:,.0f}/s, {time_left}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
