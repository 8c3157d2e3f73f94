"""Bad networks between clients and nodes: latency, little bandwidth, black holes, and nodes that refuse connections.

Theory of operation. A transport knows nothing of this. While a node has conditions, a `Link` stands between each of its
transports and the client: the link has the client's socket, and the transport has one end of a socket pair instead. The
link moves bytes between its two sockets, each direction as a `_Pipe`: a piece is read, takes its time of transmission,
arrives after the latency, and is written. A pipe that has enough bytes under way reads no more, so the sender notices
as on a slow network. The ends of a connection pass as bytes do. All times are those of the broker's clock, or the same
real time on a clock that stands still. When the conditions end, what is under way arrives at once; links of existing
connections stay, and pass everything on without a delay.

Without conditions nothing of this exists.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import UsageError
from kproto_server.network.poller import READ, WRITE
from kproto_server.network.transport import READ_SIZE_BYTES, RESET_AT_CLOSE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto_server.clock import Timer
    from kproto_server.network.event_loop import EventLoop
    from kproto_server.network.transport import Transport

UNDER_WAY_MAX_BYTES = 1 << 20
"""Bytes of one direction that were read and have not arrived."""
LATENCY_MAX_MS = 86_400_000
"""A day; a timer can take no more than some years."""
PIECES_A_SECOND = 100
"""With little bandwidth, a piece has the bytes of this part of a second, at least one."""


class Conditions(NamedTuple):
    """The network between clients and a node."""

    latency_ms: int = 0
    """Of each direction: a response takes twice this time."""
    bytes_per_second: int | None = None
    """Of each direction of each connection; None: without a limit."""
    black_hole: bool = False
    """No byte passes, nor the end of a connection; new connections are accepted."""
    refuse: bool = False
    """New connections are refused; those that exist go on."""

    @property
    def shapes(self) -> bool:
        """Whether bytes pass later than they were sent, or not at all."""
        return self.latency_ms > 0 or self.bytes_per_second is not None or self.black_hole


GOOD = Conditions()


def checked(latency_ms: object, bytes_per_second: object, *, black_hole: object, refuse: object) -> Conditions:
    """Return conditions that were given by a user.

    Raises:
        UsageError: there are none, a value is wrong, or a black hole has a latency or a bandwidth.
    """
    if type(latency_ms) is not int or not 0 <= latency_ms <= LATENCY_MAX_MS:
        raise UsageError(f"latency_ms is a number from 0 to {LATENCY_MAX_MS}, not {latency_ms!r}")
    if bytes_per_second is not None and (type(bytes_per_second) is not int or bytes_per_second < 1):
        raise UsageError(f"bytes_per_second is a number from 1 on, not {bytes_per_second!r}")
    for name, value in (("black_hole", black_hole), ("refuse", refuse)):
        if not isinstance(value, bool):
            raise UsageError(f"{name} is True or False, not {value!r}")
    conditions = Conditions(latency_ms, bytes_per_second, bool(black_hole), bool(refuse))
    if conditions == GOOD:
        raise UsageError("conditions of a network are latency_ms, bytes_per_second, black_hole and refuse: give one")
    if black_hole and (latency_ms or bytes_per_second is not None):
        raise UsageError("no byte passes a black hole: it has neither latency_ms nor bytes_per_second")
    return conditions


class Links:
    """The conditions of all nodes, and the links of their connections. The server owns it and calls `close`."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._conditions: dict[int, Conditions] = {}
        self._links: dict[Transport, tuple[int, Link]] = {}
        """With the node, by transport; a transport may have closed before its link has."""

    def conditions(self, node_id: int) -> Conditions:
        """Return the conditions of a node, `GOOD` if it has none."""
        return self._conditions.get(node_id, GOOD)

    def set(self, node_id: int, conditions: Conditions, transports: Iterable[Transport]) -> None:
        """Replace the conditions of a node; ``transports``: its connections."""
        self._conditions[node_id] = conditions
        for of_node, link in list(self._links.values()):
            if of_node == node_id:
                link.change(conditions)
        for transport in list(transports):
            self.connected(node_id, transport)

    def connected(self, node_id: int, transport: Transport) -> None:
        """Put a link before a transport, if the node's conditions need one and it has none."""
        conditions = self.conditions(node_id)
        if conditions.shapes and transport not in self._links and transport.fd >= 0:
            link = Link(self._loop, transport, conditions, lambda: self._links.pop(transport, None))
            self._links[transport] = node_id, link

    def clear(self) -> None:
        """End all conditions, at the end of the broker; bytes that are under way arrive, and requests that have."""
        self._conditions.clear()
        for _, link in list(self._links.values()):
            link.change(GOOD)
            link.drain()

    def close(self) -> None:
        """Pass on what has arrived, as far as the kernel takes it, and close all links."""
        for _, link in list(self._links.values()):
            link.drain()
            link.close()


class Link:
    """Moves the bytes of one connection between the client's socket and its transport. Owns both of its sockets."""

    def __init__(
        self, loop: EventLoop, transport: Transport, conditions: Conditions, on_closed: Callable[[], object]
    ) -> None:
        own, other = socket.socketpair()
        self._transport_end = TransportEnd(fileno=other.detach())
        for sock in (own, self._transport_end):
            sock.setblocking(False)
        client = transport.replace_socket(self._transport_end)
        self.loop: EventLoop = loop
        self.conditions: Conditions = conditions
        self._on_closed = on_closed
        self._is_closed = False
        self._client = _End(self, client)
        self._inner = _End(self, own)
        self._requests = _Pipe(self, self._client, self._inner)
        self._responses = _Pipe(self, self._inner, self._client)
        self.watch()

    def change(self, conditions: Conditions) -> None:
        """Replace the conditions; if they end, bytes that are under way arrive."""
        self.conditions = conditions
        for pipe in (self._requests, self._responses):
            pipe.changed()
        self.watch()

    def watch(self) -> None:
        """Bring what the poller watches in line with what both pipes can do."""
        if not self._is_closed:
            self._client.watch(reads=self._requests.reads, writes=self._responses.writes)
            self._inner.watch(reads=self._responses.reads, writes=self._requests.writes)

    def on_ready(self, end: _End, mask: int) -> None:
        """Read or write one of the sockets, which is ready for it."""
        outgoing, incoming = (
            (self._responses, self._requests) if end is self._client else (self._requests, self._responses)
        )
        if mask & WRITE:
            outgoing.write()
        if mask != WRITE and not self._is_closed and incoming.reads:
            incoming.read()
        self.watch()

    def ended(self, pipe: _Pipe) -> None:
        """Pass on the end of one direction."""
        if pipe is self._responses:  # the transport has closed
            self.close()
        else:
            self._inner.end()

    def failed(self, pipe: _Pipe) -> None:
        """Note that a socket cannot be written any more."""
        if pipe is self._responses:  # the client is gone
            self.close()

    def drain(self) -> None:
        """Pass on what both sides have sent, as far as the kernel takes it."""
        for pipe in (self._requests, self._responses):
            if not self._is_closed:
                pipe.drain()

    def close(self) -> None:
        """Close both sockets; may be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        self._client.close(resets=self._transport_end.resets)
        self._inner.close(resets=False)
        self._on_closed()


class TransportEnd(socket.socket):
    """The socket that a transport has instead of its client's. It remembers that the transport resets it."""

    resets: bool = False

    def setsockopt(self, level: int, name: int, value: Any, *length: Any) -> None:
        """Set an option; SO_LINGER is that of `RESET_AT_CLOSE`."""
        if (level, name) == (socket.SOL_SOCKET, socket.SO_LINGER):
            self.resets = value == RESET_AT_CLOSE


class _End:
    """One of the two sockets of a link, as the event loop sees it. Owns the socket."""

    def __init__(self, link: Link, sock: socket.socket) -> None:
        self._link = link
        self.socket: socket.socket = sock
        self._watched = 0

    def on_ready(self, mask: int, now_ms: int) -> None:
        self._link.on_ready(self, mask)

    def watch(self, *, reads: bool, writes: bool) -> None:
        """Watch for these; without either the poller does not have the socket: a hangup would be reported forever."""
        mask = (READ if reads else 0) | (WRITE if writes else 0)
        loop, fd = self._link.loop, self.socket.fileno()
        if mask == self._watched:
            return
        if not mask:
            loop.remove(fd)
        elif not self._watched:
            loop.add(fd, self, mask)
        else:
            loop.poller.modify(fd, mask)
        self._watched = mask

    def end(self) -> None:
        """Have the other side read the end."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:  # it has closed already
            return

    def close(self, *, resets: bool) -> None:
        self.watch(reads=False, writes=False)
        if resets:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        self.socket.close()


class _Pipe:
    """One direction of a link."""

    def __init__(self, link: Link, source: _End, sink: _End) -> None:
        self._link = link
        self._source = source.socket
        self._sink = sink.socket
        self._under_way: deque[bytes] = deque()
        """Pieces that were transmitted and have not arrived; ``b""`` is the end."""
        self._arrived = bytearray()
        """What the kernel has not taken."""
        self._count_bytes = 0
        """All bytes that were read and not written."""
        self._transmission: Timer | None = None
        """Ends the transmission of `_piece`."""
        self._piece = b""
        self._carry_ms = 0.0
        """What the last piece took longer than its timer, as timers have whole milliseconds."""
        self._has_source_ended = False
        self._has_end_arrived = False
        self._has_failed = False

    @property
    def reads(self) -> bool:
        """Whether another piece can be read."""
        return not (
            self._link.conditions.black_hole
            or self._transmission is not None
            or self._has_source_ended
            or self._source.fileno() < 0
            or self._count_bytes >= UNDER_WAY_MAX_BYTES
        )

    @property
    def writes(self) -> bool:
        """Whether bytes have arrived that the kernel has not taken."""
        return bool(self._arrived) and not self._link.conditions.black_hole

    def read(self) -> bool:
        """Read a piece, which is transmitted now; return whether there was one."""
        bandwidth = self._link.conditions.bytes_per_second
        size = READ_SIZE_BYTES if bandwidth is None else max(1, min(bandwidth // PIECES_A_SECOND, READ_SIZE_BYTES))
        try:
            piece = self._source.recv(size)
        except BlockingIOError:
            return False
        except OSError:
            piece = b""  # a reset is an end, too
        self._has_source_ended = not piece
        self._count_bytes += len(piece)
        self._piece = piece
        if bandwidth is None:
            self._transmit()
        else:
            duration_ms = len(piece) * 1000 / bandwidth + self._carry_ms
            self._carry_ms = duration_ms % 1
            self._transmission = self._after(int(duration_ms), self._end_transmission)
        return bool(piece)

    def _after(self, duration_ms: int, action: Callable[[], None]) -> Timer:
        clock = self._link.loop.clock
        return clock.call_at(clock.now_ms() + duration_ms, action, for_client=True)

    def _end_transmission(self) -> None:
        self._transmit()
        if self.reads:  # now, as many pieces may pass while a test advances the clock
            self.read()
        self._link.watch()

    def _transmit(self) -> None:
        self._transmission = None
        self._under_way.append(self._piece)
        latency_ms = self._link.conditions.latency_ms
        if latency_ms:
            self._after(latency_ms, self._arrive_next)
        else:
            self._arrive_all()

    def _arrive_next(self) -> None:
        if self._under_way:  # otherwise the conditions have ended meanwhile
            self._arrive(self._under_way.popleft())
            self._link.watch()

    def _arrive_all(self) -> None:
        while self._under_way:
            self._arrive(self._under_way.popleft())

    def _arrive(self, piece: bytes) -> None:
        self._arrived += piece
        self._has_end_arrived = not piece
        self.write()

    def changed(self) -> None:
        """Proceed under other conditions."""
        if self._transmission is not None and self._link.conditions.bytes_per_second is None:
            self._transmission.cancel()
            self._transmit()
        if not self._link.conditions.shapes:
            self._arrive_all()
        self.write()

    def write(self) -> None:
        """Write what has arrived, and the end behind it, unless there is a black hole."""
        if self._link.conditions.black_hole or self._has_failed or self._sink.fileno() < 0:
            return
        if self._arrived:
            try:
                sent = self._sink.send(self._arrived)
            except BlockingIOError:
                return
            except OSError:
                self._has_failed = True
                self._arrived.clear()
                self._link.failed(self)
                return
            del self._arrived[:sent]
            self._count_bytes -= sent
        if self._has_end_arrived and not self._arrived:
            self._link.ended(self)

    def drain(self) -> None:
        """Move everything at once, as far as the kernel takes it."""
        while self.reads and self.read():
            pass
