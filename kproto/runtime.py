"""What generated codecs call: varints, tag sections, and turning a failure into the documented error.

No construct here, and nothing that a broker would wait for at start. When generated code fails, the interpreted
codec reads or writes the same thing again, slowly, to say exactly which field is wrong; that is the only time it
is imported.
"""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING, Any

from kproto.declaration import TaggedField
from kproto.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.declaration import Message

new: Callable[..., Any] = tuple.__new__
join = b"".join

SCAN_MIN = 3
"""Elements from which reading an array at once is quicker than a loop."""
PACK_MIN, PACK_MAX = 8, 512
"""Elements packed by one struct call: below, a loop is quicker; above, the struct kept for it is too large."""


class Malformed(Exception):
    """Raised inside generated code only; always becomes a DecodeError or EncodeError."""


FAILURES = (Malformed, struct.error, IndexError, UnicodeError, AttributeError, TypeError, ValueError)


def malformed() -> Any:
    """Refuse, from within an expression."""
    raise Malformed


def check_uuid(value: bytes) -> bytes:
    """Return a UUID's octets; struct would pad or cut them in silence."""
    if len(value) != 16:
        raise Malformed
    return value


def more_uvarint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Finish an unsigned varint whose first octet, already read, has its high bit set."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        octet = data[position]
        position += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise Malformed


def read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits; return ``(value, position after it)``."""
    first = data[position]
    return (first, position + 1) if first < 0x80 else more_uvarint(data, position + 1, first)


def long_uvarint(value: int) -> bytes:
    """Return the octets of an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


UVARINTS = tuple(bytes((n,)) for n in range(0x80))
"""The unsigned varints of one octet."""


def uvarint(value: int) -> bytes:
    """Return the octets of an unsigned varint."""
    return UVARINTS[value] if value < 0x80 else long_uvarint(value)


def unknown_tags(data: bytes, position: int, count: int) -> tuple[tuple[TaggedField, ...], int]:
    """Read ``count`` tagged fields, none of which is declared."""
    if count > 0x7F:
        count, position = more_uvarint(data, position, count)
    found = []
    for _ in range(count):
        number, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        end = position + size
        if end > len(data):
            raise Malformed
        found.append(TaggedField(number, data[position:end]))
        position = end
    return tuple(found), position


def tag_section(unknown: tuple[TaggedField, ...], known: dict[int, bytes]) -> bytes:
    """Return the tag section: count, then tags in rising order."""
    section = {field.tag: field.data for field in unknown} | known
    parts = [uvarint(len(section))]
    for number, data in sorted(section.items()):
        parts += uvarint(number), uvarint(len(data)), data
    return join(parts)


@functools.lru_cache(maxsize=256)
def packer(code: str, count: int) -> Callable[..., bytes]:
    """Return the pack method for ``count`` elements of one struct code."""
    return struct.Struct(">" + code * count).pack


def decode_failed(cls: type[Message], version: int, data: bytes, position: int) -> DecodeError:
    """Say what is wrong with bytes that the generated decoder refused."""
    from kproto.interpret import InterpretedCodec

    try:
        InterpretedCodec(cls, version).decode(data, position)
    except DecodeError as error:
        return error
    return DecodeError(cls.__name__, position, "refused")


def encode_failed(cls: type[Message], version: int, value: Any, cause: Exception) -> EncodeError:
    """Say what is wrong with a value that the generated encoder refused."""
    from kproto.interpret import InterpretedCodec

    try:
        InterpretedCodec(cls, version).encode(value)
    except EncodeError as error:
        return error
    return EncodeError(cls.__name__, str(cause) or "refused")
