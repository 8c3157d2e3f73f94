"""Request and response headers (BA-3 to BA-5): declared like any message, and read and written by hand for speed.

Theory of operation. What stands before a body depends on the API and its version: header v1, or v2 (with a tag
section) for a flexible version; v0 only for ControlledShutdown v0. The first eight octets are the same in all three,
so a reader takes key and version from there and then knows the header. A response's header is v0 (correlation id
alone) or v1 (with a tag section), and always v0 for ApiVersions, whose client can't know yet what the broker speaks.

`read_request_header` and `response_frame` stand on a broker's path of every request. They know right and wrong only;
what is wrong is told by the declared header.

A *frame* here is what follows the 4-byte size, unless a function says that it includes it.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any, NamedTuple, TypeVar, overload

from kproto import registry
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
    """A request's header, and where its body begins."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    """None is accepted from clients, and means the same as "" (BA-4)."""
    body_position: int


UNSUPPORTED_VERSION = 35
API_KEY_PATH = "RequestHeader.request_api_key"

_new_header: Any = tuple.__new__
_begin_v1 = struct.Struct(">hhih").unpack_from
_begin_v0 = struct.Struct(">hhi")
_size_and_id = struct.Struct(">Ii").pack
_size_id_and_no_tags = struct.Struct(">IiB").pack

NEVER = 32767
"""No version is that high: SaslHandshake has no flexible one."""

_flexible_from: dict[int, int] = {}
"""API key -> first version with header v2; filled at first use of a key. ControlledShutdown is never in here."""


def read_request_header(frame: bytes) -> ReceivedHeader:
    """Read the header of a request; its version is taken from the key and version that it begins with.

    A version that is not declared is no error here: how to answer it is the API's matter (BA-6, BA-21).

    Raises:
        DecodeError: truncated, or an API key that does not exist (its header's layout is unknown).
    """
    try:
        api_key, api_version, correlation_id, size = _begin_v1(frame)
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
                position = unknown_tags(frame, position, count)[1]
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
    """The plain path: for an API's first request, ControlledShutdown, and all that is wrong."""
    if len(frame) < _begin_v0.size:
        raise DecodeError("RequestHeader", len(frame), f"{len(frame)} bytes, a header has at least {_begin_v0.size}")
    api_key, api_version, _ = _begin_v0.unpack_from(frame)
    if api_key not in APIS:
        raise DecodeError(API_KEY_PATH, 0, f"no API has key {api_key}")
    version, _ = registry.header_versions(api_key, api_version)
    header, position = message_codec(RequestHeader, version).decode(frame, 0)
    if api_key != registry.CONTROLLED_SHUTDOWN:
        flexible = registry.request_class(api_key)._flexible
        _flexible_from[api_key] = flexible.first if flexible.first <= flexible.last else NEVER
    return ReceivedHeader(api_key, api_version, header.correlation_id, header.client_id, position)


def response_frame(correlation_id: int, header_version: int, body: bytes) -> bytes:
    """Return a response as it goes on the wire, its 4-byte size included.

    Raises:
        EncodeError: the correlation id is no int32, or the whole is larger than an int32 can say.
    """
    try:
        if header_version:
            return _size_id_and_no_tags(len(body) + 5, correlation_id, 0) + body
        return _size_and_id(len(body) + 4, correlation_id) + body
    except struct.error as error:
        raise EncodeError("ResponseHeader.correlation_id", str(error)) from None


def request_frame(request: Request, version: int, *, correlation_id: int, client_id: str | None = "") -> bytes:
    """Return a request as it goes on the wire, its 4-byte size included.

    Raises:
        EncodeError: a field's value has no form in this version.
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
    """Read the response to a request of an API in one version; return ``(correlation_id, response)``.

    ``api`` is an API key, or the class of the request or of the response. A broker that does not know an ApiVersions
    version answers error 35 in the layout of v0 (BA-21), and so it is read.

    Raises:
        DecodeError: not this layout, or bytes are left over.
        UnsupportedVersion: the version is not declared.
    """
    api_key = api if isinstance(api, int) else api._api_key
    cls = api if isinstance(api, type) and issubclass(api, Response) else registry.response_class(api_key)
    header_version = registry.header_versions(api_key, version)[1]
    header, position = message_codec(ResponseHeader, header_version).decode(frame, 0)
    if api_key == registry.API_VERSIONS and frame[position : position + 2] == UNSUPPORTED_VERSION.to_bytes(2, "big"):
        version = 0
    return header.correlation_id, decode_exactly(cls, frame, version, position)
