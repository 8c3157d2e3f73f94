"""Every layout once, the positions of lengths, counts and varints in a body, and a decode that compares both codecs."""

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
    """A layout whose generated code differs from that of earlier versions."""

    cls: type[Message]
    version: int
    packs: bool
    """Whether the encoder packs many elements at once."""

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


class SizeField(NamedTuple):
    """The position of a length, a count, a tag or a tag's size in a body."""

    position: int
    size: int
    compact: bool


def size_fields(source: Source, body: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[SizeField, ...]:
    """Return the size fields of a body in the order in which the interpreted codec reads them."""
    found = []
    length, varint = Prefixed._length, UVarint._parse

    def seen_length(self: Prefixed, stream: Any, context: Any, path: str) -> int | None:
        position = stream.tell()
        value = length(self, stream, context, path)
        if not self.compact:
            found.append(SizeField(position, stream.tell() - position, compact=False))
        return value

    def seen_varint(self: UVarint, stream: Any, context: Any, path: str) -> int:
        position = stream.tell()
        value = varint(self, stream, context, path)
        found.append(SizeField(position, stream.tell() - position, compact=True))
        return value

    with monkeypatch.context() as patch:
        patch.setattr(Prefixed, "_length", seen_length)
        patch.setattr(UVarint, "_parse", seen_varint)
        InterpretedCodec(source.cls, source.version).decode(body)
    return tuple(found)


def decode_with_both(source: Source, data: bytes) -> tuple[Any, int] | None:
    """Return the result of the generated codec, or None if it raises; check that the interpreted codec does the same.

    After a failure, the generated codec asks the interpreted one for the reason; its own reason is only "refused".
    """
    try:
        found = message_codec(source.cls, source.version).decode(data, 0)
    except DecodeError as error:
        reason = error.reason
    else:
        reference = InterpretedCodec(source.cls, source.version).decode(data, 0)
        assert reference == found or repr(reference) == repr(found), "repr for NaN, which is not equal to itself"
        return found
    assert reason != "refused", f"the interpreted codec accepts {data.hex()}"
    return None
