"""Connections whose client has not finished its handshake (TLS) or its authentication (SASL): they end by the clock.

Theory of operation. As in Kafka, such a connection has no time limit of its own: it ends when no bytes have arrived for
`connections.max.idle.ms`. Of an authenticated client that is real time (`Server.close_idle`), so that a test may
advance the clock by days without losing its clients. A half-open connection ends by the broker's clock, too, since
nothing of a client is lost with it. A clock that runs or jumps ahead of real time leaves the client some real time
nevertheless, because handshakes take real time.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kproto_server.network.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.clock import Timer
    from kproto_server.connection.connection import Connection
    from kproto_server.network.event_loop import EventLoop
    from kproto_server.network.transport import ClientSocket

logger = logging.getLogger("kproto")

REAL_TIME_MIN_MS = 10_000
"""Real time without bytes that a client has on a clock that is scaled or automatic."""


class HalfOpenTransport(Transport):
    """The transport of a client that has to authenticate; it is half-open until then."""

    __slots__ = ("_half_open_ms", "_idle_max_ms", "_timer")

    def __init__(
        self,
        loop: EventLoop,
        sock: ClientSocket,
        connection: Connection,
        on_closed: Callable[[Transport], None],
        idle_max_ms: int,
    ) -> None:
        """``idle_max_ms``: `connections.max.idle.ms`; negative: never."""
        super().__init__(loop, sock, connection, on_closed)
        self._idle_max_ms = idle_max_ms
        self._half_open_ms = loop.clock.now_ms()
        """Broker time of the latest bytes of a half-open connection."""
        self._timer: Timer | None = None
        if idle_max_ms >= 0:
            self._call_in(idle_max_ms)

    @property
    def is_half_open(self) -> bool:
        """Whether the client is not authenticated."""
        authentication = self._connection.info.authentication
        return authentication is not None and authentication.user is None

    def on_ready(self, mask: int, now_ms: int) -> None:
        Transport.on_ready(self, mask, now_ms)
        if self._timer is not None:
            if self.is_half_open:
                self._half_open_ms = now_ms
                self.active_ms: float = self._loop.clock.real_ms
            else:
                self._timer.cancel()
                self._timer = None

    def _call_in(self, duration_ms: float, next_run_ms: Callable[[int, int], int] | None = None) -> None:
        # In the background: an automatic clock does not jump to the end of a handshake.
        clock = self._loop.clock
        self._timer = clock.call_at(
            int(clock.now_ms() + duration_ms), self._end_half_open, in_background=True, next_run_ms=next_run_ms
        )

    def _end_half_open(self) -> None:
        self._timer = None
        clock = self._loop.clock
        if not self.is_half_open:
            return
        left_ms: float = self._half_open_ms + self._idle_max_ms - clock.now_ms()
        if self.is_waiting:  # its failure is delayed, which is the broker's doing
            left_ms = self._idle_max_ms
        elif clock.mode.rate > 1 or clock.mode.auto:
            real_left_ms = (self.active_ms + REAL_TIME_MIN_MS - clock.real_ms) * clock.mode.rate
            if left_ms <= 0 < real_left_ms:  # no real time passes in an advance: it has one look, at its end
                self._call_in(real_left_ms, lambda due_ms, quiet_until_ms: quiet_until_ms)
                return
        if left_ms > 0:
            self._call_in(left_ms)
            return
        logger.info("%s: closed: half-open for connections.max.idle.ms, %d ms", self.client, self._idle_max_ms)
        self.close()

    def close(self, *, resets: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().close(resets=resets)
