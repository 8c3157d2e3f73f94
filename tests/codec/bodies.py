"""Every layout once, where in a body lengths, counts and varints stand, and what both codecs make of hostile bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from kproto.errors import DecodeError
from kproto.generate import Module
from kproto.interpret import InterpretedCodec
from kproto.message import Message
from kproto.message_codec import message_codec
from kproto.primitives import Prefixed, UVarint
from tests.codec.strategies import LAYOUTS


class Source(NamedTuple):
    """A layout whose generated code is not that of an earlier version."""

    cls: type[Message]
    version: int
    packs: bool
    """Whether it packs many elements at once."""

    def __str__(self) -> str:
        return f"{self.cls.__name__} v{self.version}"


def _sources() -> Iterator[Source]:
    known = set()
    for cls, version in LAYOUTS:
        module = Module()
        module.add(cls, version)
        code = (cls, *module.bodies)
        if code not in known:
            known.add(code)
            yield Source(cls, version, "Packers(" in module.source())


SOURCES = tuple(_sources())
each_source = pytest.mark.parametrize("source", SOURCES, ids=str)


class Place(NamedTuple):
    """Where a length, a count, a tag or a tag's size stands in a body."""

    position: int
    size: int
    compact: bool


def places(source: Source, body: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Place, ...]:
    """Every such place, as the interpreted codec comes by when it reads the body."""
    found = []
    length, varint = Prefixed._length, UVarint._parse

    def seen_length(self: Prefixed, stream: Any, context: Any, path: str) -> int | None:
        position = stream.tell()
        value = length(self, stream, context, path)
        if not self.compact:
            found.append(Place(position, stream.tell() - position, compact=False))
        return value

    def seen_varint(self: UVarint, stream: Any, context: Any, path: str) -> int:
        position = stream.tell()
        value = varint(self, stream, context, path)
        found.append(Place(position, stream.tell() - position, compact=True))
        return value

    with monkeypatch.context() as patch:
        patch.setattr(Prefixed, "_length", seen_length)
        patch.setattr(UVarint, "_parse", seen_varint)
        InterpretedCodec(source.cls, source.version).decode(body)
    return tuple(found)


def verdict(source: Source, data: bytes) -> tuple[Any, int] | None:
    """What the generated codec makes of bytes; None: refused. The interpreted codec is held to the same.

    When the generated one refuses, it asks the interpreted one what is wrong, and by itself says only "refused".
    """
    try:
        found = message_codec(source.cls, source.version).decode(data, 0)
    except DecodeError as error:
        refusal = error.reason
    else:
        plain = InterpretedCodec(source.cls, source.version).decode(data, 0)
        assert plain == found or repr(plain) == repr(found), "but for NaN, which equals nothing"
        return found
    assert refusal != "refused", f"the interpreted codec takes {data.hex()}"
    return None
