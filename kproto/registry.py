"""(API key, version) -> codec: the shipped generated one, else one generated here and now from the declaration.

A wheel carries ``kproto._generated`` (made by the build); a checkout does not and generates at first use. Both come
from the same generator. `interpreted` is the plain path, for tests, diagnosis and benchmarks.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import DecodeError, UnsupportedVersion
from kproto.messages import APIS, module_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.declaration import Message, Request, Response

    Decode = Callable[[bytes, int], tuple[Any, int]]
    Encode = Callable[[Any], bytes]


class MessageCodec(NamedTuple):
    """Both directions of one message in one version.

    ``decode(data, position)`` returns ``(value, position after it)`` and raises DecodeError; ``encode(value)`` returns
    the body and raises EncodeError.
    """

    decode: Decode
    encode: Encode


class Codec(NamedTuple):
    """An API in one version: request and response, and the header versions that go with them."""

    decode_request: Decode
    encode_request: Encode
    decode_response: Decode
    encode_response: Encode
    request_header_version: int
    response_header_version: int


API_VERSIONS = 18
CONTROLLED_SHUTDOWN = 7


def request_class(api_key: int) -> type[Request]:
    """Return the declared request of an API.

    Raises:
        UnsupportedVersion: no such API.
    """
    found: type[Request] = _class(api_key, "Request")
    return found


def response_class(api_key: int) -> type[Response]:
    """Return the declared response of an API.

    Raises:
        UnsupportedVersion: no such API.
    """
    found: type[Response] = _class(api_key, "Response")
    return found


def _class(api_key: int, side: str) -> Any:
    if api_key not in APIS:
        raise UnsupportedVersion(api_key, -1)
    module = importlib.import_module(f"kproto.messages.{module_name(api_key)}")
    return getattr(module, APIS[api_key] + side)


def versions(api_key: int) -> range:
    """Return the declared versions of an API's request."""
    first, last = request_class(api_key)._versions
    return range(first, last + 1)


@functools.cache
def codec(api_key: int, api_version: int) -> Codec:
    """Return the codec of an API in one version.

    Raises:
        UnsupportedVersion: not declared.
    """
    return _assemble(api_key, api_version, message_codec)


@functools.cache
def interpreted(api_key: int, api_version: int) -> Codec:
    """Return the codec that walks the construct tree: slow, plain, the oracle of the generated one.

    Raises:
        UnsupportedVersion: not declared.
    """
    from kproto.interpret import InterpretedCodec

    def make(cls: type[Message], version: int) -> MessageCodec:
        plain = InterpretedCodec(cls, version)
        return MessageCodec(plain.decode, plain.encode)

    return _assemble(api_key, api_version, make)


def _assemble(api_key: int, api_version: int, make: Callable[[type[Message], int], MessageCodec]) -> Codec:
    request = make(request_class(api_key), api_version)
    response = make(response_class(api_key), api_version)
    return Codec(*request, *response, *header_versions(api_key, api_version))


def header_versions(api_key: int, api_version: int) -> tuple[int, int]:
    """Return the versions of the request's and the response's header (BA-3, BA-5)."""
    flexible = request_class(api_key)._flexible.covers(api_version)
    if api_key == CONTROLLED_SHUTDOWN and api_version == 0:
        return 0, 0
    return (2 if flexible else 1), (1 if flexible and api_key != API_VERSIONS else 0)


_codecs: dict[tuple[type[Any], int], MessageCodec] = {}


def message_codec(cls: type[Message], version: int) -> MessageCodec:
    """Return the generated codec of one message in one version.

    Raises:
        UnsupportedVersion: not declared.
    """
    found = _codecs.get((cls, version))
    if found is None:
        found = _codecs[cls, version] = _make_codec(cls, version)
    return found


def _make_codec(cls: type[Message], version: int) -> MessageCodec:
    if not cls._versions.covers(version):
        raise UnsupportedVersion(getattr(cls, "_api_key", -1), version)
    names = f"decode_{cls.__name__}_{version}", f"encode_{cls.__name__}_{version}"
    scope = _shipped(cls.__module__) or _generate(cls, version)
    return MessageCodec(scope[names[0]], scope[names[1]])


def _shipped(module: str) -> dict[str, Any] | None:
    """Return the generated module that belongs to a module of declarations, if this is a built wheel."""
    try:
        return vars(importlib.import_module(generated_name(module)))
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("kproto._generated"):
            return None
        raise


def generated_name(module: str) -> str:
    """``kproto.messages.k08_offset_commit`` -> ``kproto._generated.k08_offset_commit``."""
    return f"kproto._generated.{module.rpartition('.')[2]}"


def _generate(cls: type[Message], version: int) -> dict[str, Any]:
    from kproto.generate import Module

    module = Module()
    module.add(cls, version)
    scope: dict[str, Any] = {"__name__": generated_name(cls.__module__)}
    exec(compile(module.source(), f"<{cls.__name__} v{version}>", "exec"), scope)  # noqa: S102 - our own generator's text
    return scope


def decode_exactly(cls: type[Message], data: bytes, version: int) -> Any:
    """Decode a body that must fill ``data``.

    Raises:
        DecodeError: not this layout, or bytes are left over.
    """
    value, end = message_codec(cls, version).decode(data, 0)
    if end != len(data):
        raise DecodeError(cls.__name__, end, f"{len(data) - end} bytes after the end")
    return value
