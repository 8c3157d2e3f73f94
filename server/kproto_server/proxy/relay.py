"""Relay one connection: two tasks move bytes between the client's socket and the broker's.

Each task sends what it has read before it reads again, so that a client or a broker that does not read stops the other
side's socket, and nothing is collected beyond `cutting`. Too many requests without a response stop the client, too.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from kproto_server.proxy.sockets import READ_MIN_BYTES, receive, send

if TYPE_CHECKING:
    from kproto_server.network.tls import TlsSocket
    from kproto_server.proxy.exchanges import Exchanges
    from kproto_server.proxy.recording import RecordedConnection

READ_MAX_BYTES = 1024 * 1024
"""Bytes of one read: more for a connection whose last read was full."""
PENDING_MAX = 10_000
"""Requests of a connection that wait for their response; further ones stay in the socket."""
LAST_REQUESTS_S = 30.0
"""How long a broker may take for the requests of a client that has ended."""


class Relay:
    """One client's connection and the one to its broker; the caller closes both sockets, which do not block."""

    def __init__(
        self,
        client: socket.socket | TlsSocket,
        broker: socket.socket,
        exchanges: Exchanges,
        captured: RecordedConnection | None = None,
    ) -> None:
        self._client = client
        self._broker = broker
        self._exchanges = exchanges
        self._captured = captured
        self._has_room = trio.Event()
        self.has_client_ended: bool = False
        """Whether the client has ended the connection; else the broker has."""

    async def run(self) -> None:
        """Move requests and responses until the broker has closed the connection, as it does for a client that ends.

        Raises:
            ExceptionGroup: of what replacing addresses has raised.

        Cancellation: a piece may have been sent in part.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._move_requests, nursery.cancel_scope)
            await self._move_responses()
            nursery.cancel_scope.cancel()

    async def _move_requests(self, scope: trio.CancelScope) -> None:
        """Move requests until the client ends; then cancel the scope of the relay after `LAST_REQUESTS_S`.

        Cancellation: a piece may have been sent in part.
        """
        exchanges, size = self._exchanges, READ_MIN_BYTES
        while data := await receive(self._client, size):
            size = READ_MAX_BYTES if len(data) == size else READ_MIN_BYTES
            if self._captured is not None:
                self._captured.sent(data)
            if not await send(self._broker, exchanges.requests.feed(data)):
                return  # the other task reads the broker's last responses, and its end
            while len(exchanges.pending) >= PENDING_MAX:
                self._has_room = trio.Event()
                await self._has_room.wait()
        self.has_client_ended = True
        with suppress(OSError):  # the broker reads what was sent, then the end: closing the socket could lose requests
            # Not SSLSocket's own method, which would end reading, too.
            socket.socket.shutdown(self._broker, socket.SHUT_WR)
        await trio.sleep(LAST_REQUESTS_S)
        scope.cancel()

    async def _move_responses(self) -> None:
        """Move responses until the broker ends, also those for a client that is gone.

        Cancellation: a piece may have been sent in part.
        """
        exchanges, size, has_client = self._exchanges, READ_MIN_BYTES, True
        while data := await receive(self._broker, size):
            size = READ_MAX_BYTES if len(data) == size else READ_MIN_BYTES
            if self._captured is not None:
                self._captured.received(data)
            pieces = exchanges.responses.feed(data)
            self._has_room.set()
            has_client = has_client and await send(self._client, pieces)
