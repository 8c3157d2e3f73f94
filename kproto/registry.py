"""(API key, version) -> codec of the API: request and response, and the versions of their headers."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import UnsupportedVersion
from kproto.message_codec import MessageCodec, message_codec
from kproto.messages import APIS, module_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.message import Message, Request, Response
    from kproto.message_codec import Decode, Encode, EncodeSlices


class ApiCodec(NamedTuple):
    """An API in one version: request and response, and the header versions that go with them."""

    decode_request: Decode
    encode_request: Encode
    decode_response: Decode
    encode_response: Encode
    request_header_version: int
    response_header_version: int
    encode_response_slices: EncodeSlices | None = None
    """As `MessageCodec.encode_slices`."""


API_VERSIONS = 18
CONTROLLED_SHUTDOWN = 7


def request_class(api_key: int) -> type[Request]:
    """Return the declared request of an API.

    Raises:
        UnsupportedVersion: the API does not exist.
    """
    found: type[Request] = _class(api_key, "Request")
    return found


def response_class(api_key: int) -> type[Response]:
    """Return the declared response of an API.

    Raises:
        UnsupportedVersion: the API does not exist.
    """
    found: type[Response] = _class(api_key, "Response")
    return found


@functools.cache
def _class(api_key: int, suffix: str) -> Any:
    if api_key not in APIS:
        raise UnsupportedVersion(api_key, -1)
    module = importlib.import_module(f"kproto.messages.{module_name(api_key)}")
    return getattr(module, APIS[api_key] + suffix)


def versions(api_key: int) -> range:
    """Return the declared versions of an API's request.

    Raises:
        UnsupportedVersion: the API does not exist.
    """
    first, last = request_class(api_key)._versions
    return range(first, last + 1)


@functools.cache
def codec(api_key: int, api_version: int) -> ApiCodec:
    """Return the generated codec of an API in one version.

    Raises:
        UnsupportedVersion: the API or the version is not declared.
    """
    return _assemble(api_key, api_version, message_codec)


@functools.cache
def interpreted(api_key: int, api_version: int) -> ApiCodec:
    """Return the codec that walks the construct tree: the reference implementation for tests and benchmarks.

    Raises:
        UnsupportedVersion: the API or the version is not declared.
    """
    from kproto.interpret import InterpretedCodec

    def interpreted_codec(cls: type[Message], version: int) -> MessageCodec:
        reference = InterpretedCodec(cls, version)
        return MessageCodec(reference.decode, reference.encode)

    return _assemble(api_key, api_version, interpreted_codec)


def _assemble(api_key: int, api_version: int, codec_of: Callable[[type[Message], int], MessageCodec]) -> ApiCodec:
    request = codec_of(request_class(api_key), api_version)
    response = codec_of(response_class(api_key), api_version)
    headers = header_versions(api_key, api_version)
    return ApiCodec(*request[:2], *response[:2], *headers, response.encode_slices)


def header_versions(api_key: int, api_version: int) -> tuple[int, int]:
    """Return the versions of the request's and the response's header (BA-3, BA-5).

    Raises:
        UnsupportedVersion: the API does not exist.
    """
    flexible = request_class(api_key)._flexible.covers(api_version)
    if api_key == CONTROLLED_SHUTDOWN and api_version == 0:
        return 0, 0
    return (2 if flexible else 1), (1 if flexible and api_key != API_VERSIONS else 0)
