"""The control port: its socket, its address and token, and the loop that accepts connections.

This module is imported with the broker, so it imports little; the rest comes with the first connection.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.listeners import bracketed
from kproto_server.network.listening import CannotListen, listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    import trio

    from kproto_server.control.service import Service
    from kproto_server.network.server import Server

logger = logging.getLogger("kproto")

CONNECTIONS_MAX = 64
"""Further connections receive an error, and beyond twice as many are closed at once."""
ACCEPT_PAUSE_S = 0.1


TOKEN_VARIABLE = "KPROTO_CONTROL_TOKEN"  # noqa: S105 - its name
"""The environment variable with the token that requests need."""
TOKEN_BYTES = 24


def open_port(host: str, port: int) -> ControlPort:
    """Listen on an address; port 0 is a free port. The caller closes the socket, or runs `ControlPort.serve`.

    The token is that of the environment; an address that other machines can reach always has one.

    Raises:
        CannotListen: the address is in use.
    """
    token = os.environ.get(TOKEN_VARIABLE) or None
    try:
        sock = listen(host, port)
    except OSError as error:
        raise CannotListen(
            f"can't listen on {host}:{port}: {error.strerror or error}; choose another --control-host or "
            "--control-port (0: a free one)"
        ) from None
    if token is None and not is_loopback(sock.getsockname()[0]):
        import secrets

        token = secrets.token_urlsafe(TOKEN_BYTES)
    return ControlPort(sock, host, token)


def is_loopback(address: str) -> bool:
    """Return whether only programs on this machine can reach an address."""
    return address == "::1" or address.startswith("127.")


class ControlPort(NamedTuple):
    """A listening socket of the control API, and the token that requests need."""

    socket: socket.socket
    host: str
    """As given: clients of other machines may reach the address by another name."""
    token: str | None
    """None: requests need none, as the port listens on loopback only."""

    @property
    def url(self) -> str:
        """The address of the API."""
        return f"http://{bracketed(self.host)}:{self.socket.getsockname()[1]}"

    @property
    def content(self) -> str:
        """The content of the control file: the address, and the token in a second line if there is one."""
        return f"{self.url}\n" + ("" if self.token is None else f"{self.token}\n")

    def shown(self, *, has_file: bool) -> str:
        """Return the address for people, with the token if it is in no file."""
        return self.url if self.token is None or has_file else f"{self.url}, token {self.token}"

    async def serve(self, server: Server) -> None:
        """Accept connections until the broker stops, and close the socket.

        Cancellation:
            As of `serve_service`.
        """

        def service() -> Service:
            from kproto_server.control.broker_service import BrokerService  # the first connection imports all else

            return BrokerService(server)

        await self.serve_service(service)

    async def serve_service(self, make: Callable[[], Service]) -> None:
        """Accept connections until canceled, and close the socket.

        Args:
            make: returns what the port controls; called for each connection.

        Cancellation:
            All connections are closed; a request in progress gets no response.
        """
        import trio

        listener = trio.socket.from_stdlib_socket(self.socket)
        open_count = 0

        async def serve_connection(stream: trio.SocketStream) -> None:
            nonlocal open_count
            from kproto_server.control.admission import Admission
            from kproto_server.control.conversation import converse

            admission = Admission(is_loopback(self.socket.getsockname()[0]), self.token)
            open_count += 1
            try:
                if open_count > 2 * CONNECTIONS_MAX:
                    return
                await converse(stream, make(), admission, is_busy=open_count > CONNECTIONS_MAX)
            finally:
                open_count -= 1
                stream.socket.close()

        try:
            async with trio.open_nursery() as nursery:
                while True:
                    try:
                        accepted, _ = await listener.accept()
                    except OSError as error:
                        logger.warning("the control port can't accept: %s", error)
                        await trio.sleep(ACCEPT_PAUSE_S)
                        continue
                    nursery.start_soon(serve_connection, trio.SocketStream(accepted))
        finally:
            listener.close()
