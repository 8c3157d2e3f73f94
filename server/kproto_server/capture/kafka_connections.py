"""Find the connections of Kafka in captures, and read them from their requests on.

Theory of operation. A connection is Kafka's if its opener's first bytes are the header of a request in a version that
kproto knows. Behind lost packets it is read on from the next segment that begins so, or, for responses, with the
correlation id of a pending request: clients and brokers send what they have at once. If the capture begins in the
middle of a connection, its opener is not known, and the beginning of a response may look like a request: so requests
wait until a segment of the other side begins with the correlation id of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto import registry
from kproto.errors import ProtocolError
from kproto.framing import FRAME_SIZE_MAX
from kproto.headers import read_request_header
from kproto.messages import APIS
from kproto_server.capture.packet_files import packets
from kproto_server.capture.segments import segment
from kproto_server.capture.streams import NOT_KNOWN, Connections

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import BinaryIO, Protocol

    from kproto_server.capture.segments import Endpoint

    class Direction(Protocol):
        """Reads what one side of a connection sends; `proxy.cutting.Cutter`."""

        def feed(self, data: bytes) -> object:
            """Take bytes; after a `skip` that returned False they begin with a frame."""

        def skip(self, count: int) -> bool:
            """Pass over bytes that are missing; return False if the next frame cannot be found any more."""

    class Conversation(Protocol):
        """Reads one connection of Kafka."""

        @property
        def requests(self) -> Direction:
            """The client's side."""

        @property
        def responses(self) -> Direction:
            """The broker's side."""

        def pending_ids(self) -> Collection[int | None]:
            """Return the correlation ids of the requests that have no response yet."""

        def end(self, *, is_by_broker: bool) -> None:
            """End: the connection, or the capture."""

    NewConversation = Callable[[Endpoint, Endpoint], Conversation]
    """Takes the ends of client and broker."""


API_VERSIONS, API_VERSION_MAX = 18, 100
"""ApiVersions is recognized up to this version: clients begin with their newest."""
SIZE_BYTES = 4
HEADER_MIN_BYTES = 8
"""Bytes of the shortest request, without its size."""
VERSION_END = 8
"""Position behind the API version of a request, whose size is before it."""
RESPONSE_MIN_BYTES = 4
TLS_RECORDS = (b"\x16\x03", b"\x17\x03")
"""Beginnings of a record of TLS: a handshake, or data of a connection that began before the capture."""
CANDIDATES_MAX_BYTES = 256 * 1024


class KafkaConnections:
    """The connections of Kafka in one or more captures: `read` takes them, `end` what is left."""

    def __init__(self, new_conversation: NewConversation) -> None:
        self.new_conversation: NewConversation = new_conversation
        self.packet_count: int = 0
        self.time_ns: int = 0
        """The time of the packet that is read."""
        self.connection_count: int = 0
        """Connections of Kafka."""
        self.tls_count: int = 0
        """Connections with TLS, which cannot be read."""
        self.unread_bytes: int = 0
        """Bytes of Kafka's connections before the first readable request or response, and behind lost packets."""
        self._connections = Connections(lambda ends, opener: _Connection(self, ends, opener))

    @property
    def lost_count(self) -> int:
        """The number of places at which bytes are missing."""
        return self._connections.lost_count

    @property
    def lost_bytes(self) -> int:
        return self._connections.lost_bytes

    def read(self, stream: BinaryIO) -> None:
        """Read a pcap or pcapng file.

        Raises:
            BadCapture: the file is no capture, or damaged.
        """
        connections = self._connections
        for packet in packets(stream):
            self.packet_count += 1
            self.time_ns = packet.time_ns
            found = segment(packet)
            if found is not None:
                connections.add(found, packet.time_ns)

    def end(self) -> None:
        """End all connections; `read` is not called again."""
        self._connections.end()


class _Connection:
    """Reads one connection; a `streams.Reader`."""

    __slots__ = (
        "_all",
        "_candidates",
        "_client",
        "_conversation",
        "_ends",
        "_has_tls",
        "_is_other",
        "_is_synchronized",
    )

    def __init__(self, connections: KafkaConnections, ends: tuple[Endpoint, Endpoint], opener: int) -> None:
        self._all = connections
        self._ends = ends
        self._client = opener
        self._is_synchronized = [opener != NOT_KNOWN] * 2
        """For each side, whether the next byte is at a known position of a frame."""
        self._candidates: tuple[list[bytes], list[bytes]] = ([], [])
        """For each side, the segments from one on that may begin with a request, as long as the opener is not known; of
        an opener, those that are the beginning of a header."""
        self._conversation: Conversation | None = None
        """None: no request has come."""
        self._has_tls = False
        self._is_other = False
        """Whether it is a connection of another protocol, or of TLS."""

    def received(self, side: int, data: bytes, time_ns: int) -> None:
        if self._conversation is not None:
            self._read(self._conversation, side, data)
        elif self._client == NOT_KNOWN:
            self._find_client(side, data)
        elif side == self._client and not self._is_other:  # what a server says first is no Kafka
            beginning = b"".join((*self._candidates[side], data))
            if begins_request(beginning):
                self._candidates[side].clear()
                self._read(self._begin(side), side, beginning)
            elif _may_begin_request(beginning):  # a client may send the size of its first request alone
                self._candidates[side].append(data)
            else:
                self._is_other = True
                self._note_tls(beginning)

    def missing(self, side: int, count: int) -> None:
        self._candidates[side].clear()
        if self._conversation is None:
            self._is_synchronized = [False, False]
            if not self._is_other:
                self._client = NOT_KNOWN
            return
        direction = self._conversation.requests if side == self._client else self._conversation.responses
        if self._is_synchronized[side]:
            self._is_synchronized[side] = direction.skip(count)

    def closed(self, side: int) -> None:
        if self._conversation is not None:
            self._conversation.end(is_by_broker=NOT_KNOWN != side != self._client)

    def _begin(self, client: int) -> Conversation:
        self._client = client
        self._all.connection_count += 1
        self._conversation = self._all.new_conversation(self._ends[client], self._ends[1 - client])
        return self._conversation

    def _find_client(self, side: int, data: bytes) -> None:
        """Read the requests of the other side if this segment begins with a response to one of them."""
        own, others = self._candidates[side], self._candidates[1 - side]
        found = next((at for at, each in enumerate(others) if begins_request(each) and _responds_to(data, each)), None)
        if found is not None:
            conversation = self._begin(1 - side)
            for each in others[found:]:
                self._read(conversation, 1 - side, each)
            self._read(conversation, side, data)
            others.clear()
            own.clear()
        elif own or begins_request(data):
            own.append(data)
            while sum(map(len, own)) > CANDIDATES_MAX_BYTES:
                del own[0]
        else:
            self._note_tls(data)

    def _read(self, conversation: Conversation, side: int, data: bytes) -> None:
        is_request = side == self._client
        if not self._is_synchronized[side]:
            if not (begins_request(data) if is_request else _begins_response(data, conversation.pending_ids())):
                self._all.unread_bytes += len(data)
                return
            self._is_synchronized[side] = True
        (conversation.requests if is_request else conversation.responses).feed(data)

    def _note_tls(self, data: bytes) -> None:
        if data.startswith(TLS_RECORDS) and not self._has_tls:
            self._has_tls = True
            self._all.tls_count += 1


def begins_request(data: bytes) -> bool:
    """Return whether bytes begin with the size and the header of a request that kproto knows."""
    size = int.from_bytes(data[:4], "big")
    if not _may_be_request(data, size):
        return False
    try:
        header = read_request_header(data[4 : 4 + size])
    except ProtocolError:
        return False
    return header.client_id is None or header.client_id.isprintable()


def _may_begin_request(data: bytes) -> bool:
    """Return whether further bytes may make these the beginning of a request, as of `begins_request`."""
    if len(data) < SIZE_BYTES:
        return int.from_bytes(data.ljust(SIZE_BYTES, b"\0"), "big") <= FRAME_SIZE_MAX
    size = int.from_bytes(data[:SIZE_BYTES], "big")
    return len(data) < SIZE_BYTES + size and _may_be_request(data, size)


def _may_be_request(data: bytes, size: int) -> bool:
    """Return whether size, API and version, as far as they are there, are those of a request."""
    if not HEADER_MIN_BYTES <= size <= FRAME_SIZE_MAX:
        return False
    if len(data) < VERSION_END:
        return True
    key, version = int.from_bytes(data[4:6], "big"), int.from_bytes(data[6:8], "big")
    if key not in APIS:
        return False
    return version in registry.versions(key) or (key == API_VERSIONS and version <= API_VERSION_MAX)


def _responds_to(data: bytes, request: bytes) -> bool:
    """Return whether bytes begin with the size of a response, and the correlation id of a request."""
    return data[4:8] == request[8:12] and _has_response_size(data)


def _begins_response(data: bytes, pending_ids: Collection[int | None]) -> bool:
    """Return whether bytes begin with the size of a response, and the correlation id of a pending request."""
    return int.from_bytes(data[4:8], "big", signed=True) in pending_ids and _has_response_size(data)


def _has_response_size(data: bytes) -> bool:
    return RESPONSE_MIN_BYTES <= int.from_bytes(data[:4], "big") <= FRAME_SIZE_MAX
