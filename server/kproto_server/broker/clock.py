"""The broker's clock, as a test reads and advances it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import UsageError
from kproto_server.clock import is_number

if TYPE_CHECKING:
    from kproto_server.broker.thread import RunInBrokerThread


class BrokerClock:
    """The clock of a running broker (D7)."""

    def __init__(self, run: RunInBrokerThread) -> None:
        self._run = run

    def now_ms(self) -> int:
        """Return the broker's time in milliseconds since the epoch."""
        return self._run(lambda server: server.loop.clock.now_ms())

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, milliseconds: float = 0
    ) -> None:
        """Advance the broker's time; every timer that expires meanwhile runs, in order, before this returns.

        The log then contains all records that the timers wrote.

        Raises:
            UsageError: a part is no finite number, the duration is negative, or it ends after the year 9999.
        """
        parts = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds, "milliseconds": milliseconds}
        for name, value in parts.items():
            if not is_number(value):
                raise UsageError(f"{name} is a finite number, not {value!r}")
        total_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
        self._run(lambda server: server.advance(total_ms))
