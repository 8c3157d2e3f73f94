"""One logged request with its response; the bodies are decoded when they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kproto import registry
from kproto.codes import ErrorCode
from kproto.errors import KprotoError, ProtocolError
from kproto.headers import read_request_header
from kproto.messages import APIS
from kproto.offset_commit_v4 import decode_v4
from kproto_server.observation.error_codes import error_codes
from kproto_server.observation.named import names_in

if TYPE_CHECKING:
    from kproto.message import Request, Response
    from kproto_server.observation.request_log import Entry

OFFSET_COMMIT, API_VERSIONS = 8, 18
NO_HEADER = -1
ERROR_CODES = frozenset(map(int, ErrorCode))


class NotKept(KprotoError):
    """The request log does not keep the body: it is too large (`FRAME_KEPT_MAX_BYTES`), or has a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request of one client, and its response."""

    number: int
    """Sequence number; the first request since the broker started is 1."""
    time_ms: int
    """Broker time at which the request arrived, in ms since the epoch."""
    responded_ms: int | None
    """Broker time of the response; None: there is no response, or it is deferred."""
    node_id: int
    """The node that received the request."""
    client_id: str
    client_host: str
    software_name: str
    """From ApiVersions v3 and later; empty if the client did not send it."""
    software_version: str
    api_key: int
    """-1: the frame has no readable header."""
    api_version: int
    correlation_id: int
    frame: bytes = field(repr=False)
    """Header and body as received, without the size; of a very large one, or one with a secret, only the beginning."""
    response_frame: bytes | None = field(repr=False)
    is_whole: bool = field(repr=False, default=True)
    has_whole_response: bool = field(repr=False, default=True)

    @property
    def api(self) -> str:
        """Kafka's name of the API."""
        return APIS.get(self.api_key, f"API key {self.api_key}")

    @property
    def request(self) -> Request:
        """Decode and return the request.

        Raises:
            NotKept: the body was too large, or has a secret.
            ProtocolError: the API is unknown or the body malformed; such a request has no response.
        """
        if not self.is_whole:
            raise NotKept(f"{self.api} request {self.number}")
        position = read_request_header(self.frame).body_position
        decoded: Any
        if self.api_key == OFFSET_COMMIT and self.api_version == 4:
            decoded, _, _ = decode_v4(self.frame, position)
        else:
            decoded, _ = registry.codec(self.api_key, self.api_version).decode_request(self.frame, position)
        return decoded  # type: ignore[no-any-return]  # of its API's class

    @property
    def response(self) -> Response | None:
        """Decode and return the response; None: there is none.

        Raises:
            NotKept: the body was too large, or has a secret.
            ProtocolError: Kafka version 0.8 responded to a version that was never declared.
        """
        frame = self.response_frame
        if frame is None:
            return None
        if not self.has_whole_response:
            raise NotKept(f"the response to {self.api} request {self.number}")
        version = self.api_version
        if self.api_key == API_VERSIONS and frame[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big"):
            version = 0  # ApiVersions of an unserved version has a response in v0 (BA-21)
        codec = registry.codec(self.api_key, version)
        position = 4 if codec.response_header_version == 0 else 5
        decoded, _ = codec.decode_response(frame, position)
        return decoded  # type: ignore[no-any-return]  # of its API's class

    @property
    def error_codes(self) -> tuple[int, ...]:
        """Return all error codes of the response other than 0, in wire order; none if it cannot be decoded."""
        try:
            response = self.response
        except (ProtocolError, NotKept):
            return ()
        return () if response is None else tuple(error_codes(response))

    @property
    def error_names(self) -> tuple[str, ...]:
        """Return Kafka's names of these errors, each once; the number of an error that Kafka does not have."""
        return tuple(dict.fromkeys(ErrorCode(c).name if c in ERROR_CODES else str(c) for c in self.error_codes))

    @property
    def group_ids(self) -> tuple[str, ...]:
        """Return the ids of the groups that the request names."""
        try:
            return tuple(names_in(self.request).groups)
        except (ProtocolError, NotKept):
            return ()


def logged(entry: Entry) -> LoggedRequest:
    """Return the logged request of an entry; only its header is decoded."""
    connection = entry.connection
    try:
        header = read_request_header(entry.frame)
        key, version, correlation_id, client_id = header[:4]
    except ProtocolError:
        key, version, correlation_id, client_id = NO_HEADER, NO_HEADER, NO_HEADER, ""
    return LoggedRequest(
        number=entry.number,
        time_ms=entry.time_ms,
        responded_ms=entry.responded_ms,
        node_id=entry.node_id,
        client_id=client_id or "",
        client_host=connection.client_host,
        software_name=connection.software_name,
        software_version=connection.software_version,
        api_key=key,
        api_version=version,
        correlation_id=correlation_id,
        frame=entry.frame,
        response_frame=entry.response,
        is_whole=entry.is_whole,
        has_whole_response=entry.has_whole_response,
    )
