"""The broker's clock, as a test reads and advances it."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
            ValueError: the duration is negative.
        """
        total_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
        self._run(lambda server: server.advance(total_ms))
