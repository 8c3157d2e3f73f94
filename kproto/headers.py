"""Request and response headers (BA-3 to BA-5): declared as messages, and read and written by hand for speed.

Theory of operation. The header of a request depends on the API and its version: v1, or v2 (with a tag section) for a
flexible version; v0 only for ControlledShutdown v0. The first eight bytes are the same in all three, so a reader takes
API key and version from there and then knows the header. The header of a response is v0 (correlation id alone) or v1
(with a tag section), and always v0 for ApiVersions, whose client does not know yet which versions the broker supports.

A broker runs `read_request_header` and `response_frame` for every request. They only distinguish success from failure;
the codec of the declared header finds out what is wrong.

A *frame* is the bytes after the 4-byte size, unless a function says that it includes the size.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any, NamedTuple, TypeVar, overload

from kproto import registry
from kproto.codes import ErrorCode
from kproto.declaration import Int16, Int32, NullableString, ignorable, never_compact, since
from kproto.errors import DecodeError, EncodeError
from kproto.message import Message, Request, Response
from kproto.message_codec import decode_exactly, message_codec
from kproto.messages import APIS
from kproto.runtime import FAILURES, malformed, unknown_tags


class RequestHeader(Message, versions=(0, 2), flexible=2):
    """v1: + client_id?
    v2: flexible, client_id apart
    """

    request_api_key: Int16
    request_api_version: Int16
    correlation_id: Int32
    client_id: Annotated[NullableString, since(1), ignorable, never_compact] = ""


class ResponseHeader(Message, versions=(0, 1), flexible=1):
    """v1: flexible"""

    correlation_id: Int32


class ReceivedHeader(NamedTuple):
    """The header of a request, and the position of the body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    """Clients may send None, which means the same as "" (BA-4)."""
    body_position: int


API_KEY_PATH = "RequestHeader.request_api_key"

_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
_new_header: Any = tuple.__new__
_begin_v1 = struct.Struct(">hhih")
_read_begin_v1 = _begin_v1.unpack_from
_begin_v0 = struct.Struct(">hhi")
_size_and_id = struct.Struct(">Ii").pack
_size_id_and_no_tags = struct.Struct(">IiB").pack

TAGS_MAX = 1000
"""Tagged fields of a request header that are read. No release of Kafka has declared any."""

EXPLAINED_SIZE_MAX = 4096
"""Bytes of the largest frame whose header is examined by `explain_header_version`: most first requests are smaller."""
NEVER = 32767
"""Stands for no flexible version, which SaslHandshake lacks: no version is that high."""

_flexible_from: dict[int, int] = {}
"""API key -> first version with header v2; filled at first use of a key, never for ControlledShutdown."""


def read_request_header(frame: bytes) -> ReceivedHeader:
    """Return the header of a request; the API key and version at its beginning determine its layout.

    An API version that is not declared is not an error: the response to it depends on the API (BA-6, BA-21).

    Raises:
        DecodeError: the header is truncated, or the API key does not exist, so that the header's layout is unknown.
        TooManyElements: the header has more than `TAGS_MAX` tagged fields.
    """
    try:
        api_key, api_version, correlation_id, size = _read_begin_v1(frame)
        client_id: str | None
        if size > 0:
            position = 10 + size
            client_id = frame[10:position].decode()
        else:
            position = 10
            client_id = None if size else ""
        if api_version >= _flexible_from[api_key]:
            count = frame[position]
            position += 1
            if count:
                position = unknown_tags(frame, position, count, TAGS_MAX)[1]
        if position > len(frame):
            malformed()
        header: ReceivedHeader = _new_header(
            ReceivedHeader, (api_key, api_version, correlation_id, client_id, position)
        )
        return header
    except (*FAILURES, KeyError):
        pass
    return _read_as_declared(frame)


def _read_as_declared(frame: bytes) -> ReceivedHeader:
    """Read a header by its declaration: for the first request of an API, ControlledShutdown, and malformed headers."""
    if len(frame) < _begin_v0.size:
        raise DecodeError("RequestHeader", len(frame), f"{len(frame)} bytes, the least is {_begin_v0.size}")
    api_key, api_version, _ = _begin_v0.unpack_from(frame)
    if api_key not in APIS:
        raise DecodeError(API_KEY_PATH, 0, f"no API has key {api_key}")
    version, _ = registry.header_versions(api_key, api_version)
    header, position = message_codec(RequestHeader, version).decode(frame, 0, TAGS_MAX)
    if api_key != registry.CONTROLLED_SHUTDOWN:
        flexible = registry.request_class(api_key)._flexible
        _flexible_from[api_key] = flexible.first if flexible.first <= flexible.last else NEVER
    return ReceivedHeader(api_key, api_version, header.correlation_id, header.client_id, position)


def explain_header_version(frame: bytes) -> str | None:
    """Return why a request could not be decoded if it has the header of another version; None if it does not."""
    if not _begin_v1.size <= len(frame) <= EXPLAINED_SIZE_MAX:
        return None
    api_key, version, _, size = _begin_v1.unpack_from(frame)
    if api_key not in APIS or not registry.request_class(api_key)._versions.covers(version):
        return None
    right, wrong = {1: (1, 2), 2: (2, 1)}.get(registry.header_versions(api_key, version)[0], (0, 0))
    end = _begin_v1.size + max(0, size)
    if not right or (wrong == 2 and frame[end : end + 1] != b"\0"):
        return None
    try:
        decode_exactly(registry.request_class(api_key), frame, version, end + wrong - 1)
    except DecodeError:
        return None
    return f"{APIS[api_key]} v{version} has header version {right}, but the request has header version {wrong}"


def response_frame(correlation_id: int, header_version: int, body: bytes) -> bytes:
    """Return a response frame, with its 4-byte size.

    Raises:
        EncodeError: the correlation id is not an int32, or the frame is larger than its size field can express.
    """
    return _response_header(correlation_id, header_version, len(body)) + body


def joined_response_frame(correlation_id: int, header_version: int, pieces: list[bytes]) -> bytes:
    """As `response_frame`, of a body in pieces: a large one is copied once less.

    Raises:
        EncodeError: as `response_frame`.
    """
    return b"".join((_response_header(correlation_id, header_version, sum(map(len, pieces))), *pieces))


def _response_header(correlation_id: int, header_version: int, body_bytes: int) -> bytes:
    try:
        if header_version:
            return _size_id_and_no_tags(body_bytes + 5, correlation_id, 0)
        return _size_and_id(body_bytes + 4, correlation_id)
    except struct.error as error:
        raise EncodeError("ResponseHeader.correlation_id", str(error)) from None


def request_frame(request: Request, version: int, *, correlation_id: int, client_id: str | None = "") -> bytes:
    """Return a request frame, with its 4-byte size.

    Raises:
        EncodeError: a field's value cannot be written in this version.
        UnsupportedVersion: the version is not declared.
    """
    api_key = type(request)._api_key
    body = request.encode(version)
    header = RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    ).encode(registry.header_versions(api_key, version)[0])
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


R = TypeVar("R", bound=Response)


@overload
def read_response(frame: bytes, api: type[R], version: int) -> tuple[int, R]: ...
@overload
def read_response(frame: bytes, api: int | type[Request], version: int) -> tuple[int, Response]: ...
def read_response(frame: bytes, api: int | type[Request] | type[Response], version: int) -> tuple[int, Any]:
    """Return ``(correlation_id, response)`` from the response to a request of an API in one version.

    ``api`` is an API key, or the class of the request or of the response. To an unknown version of ApiVersions, brokers
    respond with UNSUPPORTED_VERSION in the layout of v0 (BA-21); such a response is read in v0.

    Raises:
        DecodeError: the frame does not have this layout, or continues after it.
        UnsupportedVersion: the version is not declared.
    """
    api_key = api if isinstance(api, int) else api._api_key
    cls = api if isinstance(api, type) and issubclass(api, Response) else registry.response_class(api_key)
    header_version = registry.header_versions(api_key, version)[1]
    header, position = message_codec(ResponseHeader, header_version).decode(frame, 0)
    if api_key == registry.API_VERSIONS and frame[position : position + 2] == _UNSUPPORTED_VERSION:
        version = 0
    return header.correlation_id, decode_exactly(cls, frame, version, position)
