"""The whole requests and responses of a capture, in the order in which they were sent."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Never

from kproto import registry
from kproto.codes import ErrorCode
from kproto.errors import ProtocolError
from kproto.headers import read_request_header, read_response
from kproto.messages import APIS
from kproto.runtime import FAILURES
from kproto_server.capture.kafka_connections import KafkaConnections
from kproto_server.proxy.cutting import PENDING_MAX, SIZE_BYTES, Cutter
from kproto_server.proxy.exchanges import API_VERSIONS, PRODUCE, SASL_HANDSHAKE, acks

if TYPE_CHECKING:
    from typing import BinaryIO

    from kproto.headers import ReceivedHeader
    from kproto.message import Response
    from kproto_server.capture.segments import Endpoint

UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
ERROR_CODE_END = 6
"""Position behind the error code of a response to ApiVersions, whose size is not in the frame."""


class Exchange:
    """A request, and its response."""

    __slots__ = ("frame", "has_response", "header", "number", "response")

    def __init__(self, number: int, frame: bytes, header: ReceivedHeader | None, *, has_response: bool) -> None:
        self.number: int = number
        """Of the connection's requests, from 1 on."""
        self.frame: bytes = frame
        """Without its size; empty when listeners have taken notice of it."""
        self.header: ReceivedHeader | None = header
        """None: it is a token of SASL, or of an API that kproto does not know."""
        self.has_response: bool = has_response
        """Whether a broker responds to it."""
        self.response: bytes | None = None
        """The captured response without its size; None: it has not come."""

    @property
    def name(self) -> str:
        """Return API and version."""
        if self.header is None:
            return "request without a known header"
        return f"{APIS[self.header.api_key]} v{self.header.api_version}"

    @property
    def correlation_id(self) -> int | None:
        return None if self.header is None else self.header.correlation_id

    def decoded(self, response: bytes) -> Response | None:
        """Return a response to this request as a message; None: its layout is not known, or it has another one."""
        header = self.header
        if header is None:
            return None
        version = header.api_version
        if header.api_key == API_VERSIONS and response[4:ERROR_CODE_END] == UNSUPPORTED_VERSION:
            version = 0
        try:
            return read_response(response, header.api_key, version)[1]
        except (ProtocolError, *FAILURES):
            return None


class Listener:
    """Takes notice of what a capture has; subclasses override what they need."""

    def requested(self, conversation: Conversation, exchange: Exchange) -> None:
        """Take notice of a request."""

    def responded(self, conversation: Conversation, exchange: Exchange) -> None:
        """Take notice of the response to a request."""

    def ended(self, conversation: Conversation, *, is_by_broker: bool) -> None:
        """Take notice of the end of a connection, or of the capture."""


class Conversation:
    """One connection; a `capture.kafka_connections.Conversation`."""

    def __init__(self, number: int, client: Endpoint, broker: Endpoint, listener: Listener) -> None:
        self.number: int = number
        """Of the capture's connections, from 1 on."""
        self.client: Endpoint = client
        self.broker: Endpoint = broker
        self.client_id: str = ""
        """That of the latest request."""
        self.listener: Listener = listener
        self.pending: deque[Exchange] = deque(maxlen=PENDING_MAX)
        self.requests: Cutter[Never] = _Requests(self)
        self.responses: Cutter[Never] = _Responses(self)

    def pending_ids(self) -> list[int | None]:
        return [exchange.correlation_id for exchange in self.pending]

    def end(self, *, is_by_broker: bool) -> None:
        self.listener.ended(self, is_by_broker=is_by_broker)


def read(stream: BinaryIO, listener: Listener) -> KafkaConnections:
    """Read a capture; the listener takes notice of each request and response in the order of the capture.

    Raises:
        BadCapture: it is no capture, or damaged.
    """
    connections = connections_of(listener)
    connections.read(stream)
    connections.end()
    return connections


def connections_of(listener: Listener) -> KafkaConnections:
    """Return the connections of captures that are still to be read; the listener takes notice as of `read`."""
    count = 0

    def new_conversation(client: Endpoint, broker: Endpoint) -> Conversation:
        nonlocal count
        count += 1
        return Conversation(count, client, broker, listener)

    return KafkaConnections(new_conversation)


class _Whole(Cutter[Never]):
    """A direction whose frames are collected."""

    __slots__ = ("_conversation",)

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        self._conversation = conversation

    def collects(self, beginning: bytearray, end: int) -> int:
        return end

    def begin(self, beginning: bytes) -> None:
        """Leave out a frame that lacks bytes."""


class _Requests(_Whole):
    __slots__ = ("_count", "_has_tokens")

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._count = 0
        self._has_tokens = False
        """Whether tokens of SASL without a header may follow."""

    def whole(self, frame: bytes) -> bytes:
        conversation, content = self._conversation, frame[SIZE_BYTES:]
        header = self._header(content)
        has_response = True
        if header is not None:
            conversation.client_id = header.client_id or ""
            if header.api_key == PRODUCE:
                try:
                    has_response = acks(content, header) != 0
                except (ProtocolError, *FAILURES):
                    has_response = False  # the broker closes the connection
        self._count += 1
        exchange = Exchange(self._count, content, header, has_response=has_response)
        if has_response:
            conversation.pending.append(exchange)
        conversation.listener.requested(conversation, exchange)
        exchange.frame = b""
        return frame

    def _header(self, content: bytes) -> ReceivedHeader | None:
        try:
            header = read_request_header(content)
        except ProtocolError:
            return None
        if self._has_tokens and header.api_version not in registry.versions(header.api_key):
            return None
        self._has_tokens = header.api_key == SASL_HANDSHAKE and header.api_version == 0
        return header


class _Responses(_Whole):
    __slots__ = ()

    def whole(self, frame: bytes) -> bytes:
        conversation, content = self._conversation, frame[SIZE_BYTES:]
        correlation_id = int.from_bytes(content[:4], "big", signed=True)
        pending = conversation.pending
        if correlation_id in conversation.pending_ids():
            while pending[0].correlation_id != correlation_id:
                pending.popleft()  # its response is lost
        elif not pending or pending[0].header is not None:
            return frame
        exchange = pending.popleft()
        exchange.response = content
        conversation.listener.responded(conversation, exchange)
        return frame
