"""The codec of one message in one version: two functions, shipped in the wheel or generated at first use.

Theory of operation. A wheel contains ``kproto._generated``, one module of codec functions for each module of
declarations, written by the build hook. A checkout does not contain that package, so that it never runs codecs older
than its declarations: the functions are generated, compiled and cached when a message is first encoded or decoded
(1 to 10 ms for each message and version). Both ways run the same generator. `kproto.generate`, and with it construct,
is imported only here and only in a checkout: serving from a wheel does not import it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kproto.errors import DecodeError, UnsupportedVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.declaration import VersionedStruct

    class Decode(Protocol):
        """A decoder of a message in one version."""

        def __call__(self, data: bytes, position: int, elements_max: int = ..., /) -> tuple[Any, int]: ...

    class Encode(Protocol):
        """An encoder of a message in one version."""

        def __call__(self, value: Any, join: Callable[[list[bytes]], bytes] = ..., /) -> bytes: ...

    EncodeSlices = Callable[[Any], Iterator[bytes]]

V = TypeVar("V", bound="VersionedStruct")


class MessageCodec(NamedTuple):
    """Both directions of one message in one version.

    ``decode(data, position)`` returns ``(value, position after it)`` and raises DecodeError. A third argument limits
    the elements that all arrays and tag sections have together; TooManyElements is raised before more are built.
    ``encode(value)`` returns the body and raises EncodeError. A second argument joins the pieces of the body in place
    of ``b"".join``: with it, `kproto.headers.joined_response_frame` makes a frame without another copy of the body.
    ``encode_slices(value)`` yields it in pieces that take about 10 ms each; the arrays of its value need a length, and
    elements only when they are iterated.
    """

    decode: Decode
    encode: Encode
    encode_slices: EncodeSlices | None = None
    """None: the message does not declare ``has_slices``."""


_codecs: dict[tuple[type[VersionedStruct], int], MessageCodec] = {}


def message_codec(cls: type[VersionedStruct], version: int) -> MessageCodec:
    """Return the generated codec of one message in one version.

    Raises:
        UnsupportedVersion: the version is not declared.
    """
    found = _codecs.get((cls, version))
    if found is None:
        found = _codecs[cls, version] = _load_codec(cls, version)
    return found


def decode_exactly(cls: type[V], data: bytes, version: int, position: int = 0) -> V:
    """Return the value of the body that begins at ``position`` and ends where ``data`` ends.

    Raises:
        DecodeError: the bytes do not have this layout, or continue after the body.
        UnsupportedVersion: the version is not declared.
    """
    value: V
    value, end = message_codec(cls, version).decode(data, position)
    if end != len(data):
        raise DecodeError(cls.__name__, end, f"{len(data) - end} bytes after the end")
    return value


def _load_codec(cls: type[VersionedStruct], version: int) -> MessageCodec:
    if not cls._versions.covers(version):
        raise UnsupportedVersion(cls._api_key, version)
    scope = _shipped(cls.__module__) or _generate(cls, version)
    name = f"{cls.__name__}_{version}"
    return MessageCodec(scope[f"decode_{name}"], scope[f"encode_{name}"], scope.get(f"encode_slices_{name}"))


def _shipped(module: str) -> dict[str, Any] | None:
    """Return the generated module for a module of declarations; None in a checkout, which has none."""
    try:
        return vars(importlib.import_module(generated_name(module)))
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("kproto._generated"):
            return None
        raise  # a shipped module exists and one of its own imports is missing: that is an error of the installation


def generated_name(module: str) -> str:
    """Return ``kproto._generated.k08_offset_commit`` for ``kproto.messages.k08_offset_commit``."""
    return f"kproto._generated.{module.rpartition('.')[2]}"


def _generate(cls: type[VersionedStruct], version: int) -> dict[str, Any]:
    import linecache

    from kproto.generate import Module

    module = Module()
    module.add(cls, version)
    source, file = module.source(), f"<{cls.__name__} v{version}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # for tracebacks and debuggers
    scope: dict[str, Any] = {"__name__": generated_name(cls.__module__)}
    exec(compile(source, file, "exec"), scope)  # noqa: S102 - our own generator's text
    return scope
