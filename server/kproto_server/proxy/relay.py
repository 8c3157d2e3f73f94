"""Relay one connection: two tasks move bytes between the client's socket and the broker's.

Each task sends what it has read before it reads again, so that a client or a broker that does not read stops the other
side's socket, and nothing is collected beyond `cutting`. Too many requests without a response stop the client, too.

A request that a fault rule acts on (`faults`) waits until all earlier ones have their responses, and later ones wait
for its end. So the task that moves requests sends the client its response, and responses keep the order of requests.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from kproto.errors import ProtocolError
from kproto_server.deferred import DelayedOperation
from kproto_server.network.freed_memory import FreedMemory
from kproto_server.network.transport import RESET_AT_CLOSE
from kproto_server.proxy.cutting import PENDING_MAX
from kproto_server.proxy.faults import FaultedRequest
from kproto_server.proxy.sockets import READ_MIN_BYTES, receive, send

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.network.tls import TlsSocket
    from kproto_server.proxy.exchanges import Exchanges, UnreadResponse
    from kproto_server.proxy.recording import RecordedConnection

READ_MAX_BYTES = 1024 * 1024
"""Bytes of one read: more for a connection whose last read was full."""
TURN_BYTES = 64 * 1024
"""Bytes of requests that are looked at in one turn of the event loop: 500 small ones take 25 ms."""
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
        received: bytes = b"",
    ) -> None:
        """``received``: what was read of the client's requests already."""
        self._client = client
        self._broker = broker
        self._exchanges = exchanges
        exchanges.responses.leaves_large = True
        self._captured = captured
        self._sending = trio.Lock()
        """Held while the client is sent something: both tasks do."""
        self._progress = trio.Event()
        """Set when responses have gone to the client."""
        self._received = bytearray(received)
        """The client's next bytes, of which more may be in the socket."""
        self._has_read_end = False
        """Whether the socket has no more."""
        self._freed_memory = FreedMemory()
        self.close_reason: str | None = None
        """Why a fault rule has closed the connection."""
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
        """Move requests until the client or a fault rule ends the connection; then cancel the scope of the relay, after
        `LAST_REQUESTS_S` for the client.

        Cancellation: a piece may have been sent in part.
        """
        exchanges, size = self._exchanges, READ_MIN_BYTES
        while data := await self._requests(size):
            size = self._next_size(data, size)
            if self._captured is not None:
                self._captured.sent(data)
            for at in range(0, len(data), TURN_BYTES):
                if at:
                    await trio.lowlevel.checkpoint()
                if not await self._pass_on(exchanges.requests.feed(data[at : at + TURN_BYTES])):
                    if self.close_reason is not None:
                        scope.cancel()
                    return  # the other task reads the broker's last responses, and its end
                while len(exchanges.pending) >= PENDING_MAX:
                    await self._next_progress()
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
            size = self._next_size(data, size)
            if self._captured is not None:
                self._captured.received(data)
            pieces = [await self._read(piece) for piece in exchanges.responses.feed(data)]
            has_client = has_client and await self._send_client(pieces)
            self._progress.set()

    async def _read(self, piece: bytes | UnreadResponse) -> bytes:
        """Return what the client gets of a response; a large one is decoded and encoded in a thread, beside which the
        connections of others go on.

        Cancellation: it waits for the thread.
        """
        if isinstance(piece, bytes):
            return piece
        steps = self._exchanges.responses.read(piece)
        try:
            work = next(steps)
            while True:
                try:
                    result = await trio.to_thread.run_sync(work)
                except ProtocolError as error:
                    work = steps.throw(error)
                else:
                    work = steps.send(result)
        except StopIteration as end:
            read: bytes = end.value
            return read

    async def _send_client(self, pieces: list[bytes]) -> bool:
        """Send the client all pieces, behind those of the other task; return False if it is gone.

        Cancellation: a part of the pieces may have been sent.
        """
        async with self._sending:
            return await send(self._client, pieces)

    def _next_size(self, data: bytes, size: int) -> int:
        """Return the bytes of the read behind one of at most ``size`` bytes."""
        if len(data) < size:
            return READ_MIN_BYTES
        self._freed_memory.keep_for(READ_MAX_BYTES)  # consuming through the proxy takes 1.3 times as long without
        return READ_MAX_BYTES

    async def _next_progress(self) -> None:
        """Wait until further responses have gone to the client.

        Cancellation: nothing is left behind.
        """
        self._progress = trio.Event()
        await self._progress.wait()

    async def _requests(self, size: int) -> bytes:
        """Return the client's next bytes, as `receive` does.

        Cancellation: no bytes are lost.
        """
        if not self._received and not self._has_read_end:
            return await receive(self._client, size)
        data = bytes(self._received)
        self._received.clear()
        return data

    async def _pass_on(self, pieces: Sequence[bytes | FaultedRequest]) -> bool:
        """Send requests to the broker, and have fault rules act; return False if the connection ends.

        Cancellation: a part of the requests may have been sent.
        """
        plain: list[bytes] = []
        for piece in pieces:
            if isinstance(piece, bytes):
                plain.append(piece)
            elif await send(self._broker, plain) and await self._act(piece):
                plain = []
            else:
                return False
        return await send(self._broker, plain)

    async def _act(self, faulted: FaultedRequest) -> bool:
        """Have a fault rule act on a request, until its response has gone; return False if the connection ends.

        Cancellation: the request or a part of the response may have been sent.
        """
        exchanges = self._exchanges
        while exchanges.responses.is_passing or (exchanges.pending and exchanges.pending[0].faulted is not faulted):
            await self._next_progress()
        async with self._sending:  # the client has read the response before
            pass
        result = faulted.begin()
        while True:
            if faulted.to_send is not None:
                frame, faulted.to_send = faulted.to_send, None
                if not await send(self._broker, [frame]):
                    return False
            if isinstance(result, DelayedOperation):
                await self._wait(result, faulted)
                result = result.respond()
                continue
            piece = faulted.piece(result, exchanges.observations)
            if piece.data:
                await self._send_client([piece.data])  # that it is gone, its next read shows
            if piece.close_reason is not None:
                if piece.resets:
                    self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
                self.close_reason = piece.close_reason
                return False
            if piece.then is None:
                break
            result = piece.then
        if exchanges.pending and exchanges.pending[0].faulted is faulted:
            exchanges.pending.popleft()
        return True

    async def _wait(self, operation: DelayedOperation, faulted: FaultedRequest) -> None:
        """Wait for the completion of an operation, for its deadline, or for the end of the client, as a broker does.

        Cancellation: nothing is left behind.
        """
        completion = operation.completion
        if completion is not None and completion.is_complete:
            return
        if faulted.is_sent:  # until the broker has responded, also if the client ends
            while completion is not None and not completion.is_complete:
                await self._next_progress()
            return
        deadline = float("inf") if operation.deadline_ms is None else operation.deadline_ms / 1000
        with trio.move_on_at(deadline):
            while not self._has_read_end and len(self._received) < READ_MAX_BYTES:
                data = await receive(self._client, READ_MIN_BYTES)
                self._received += data
                self._has_read_end = not data
            if not self._has_read_end:
                await trio.sleep_forever()
