"""What generated codecs call: varints, tag sections, and turning a failure into the documented error.

No construct here, and nothing that a broker would wait for at start. When generated code fails, the interpreted
codec reads or writes the same thing again, slowly, to say exactly which field is wrong; that is the only time it
is imported.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

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


UVARINT_MAX = 0xFFFFFFFF
DIAGNOSIS_SIZE_MAX = 1 << 16
"""Octets of the largest body that is read again to say what is wrong with it: construct takes up to a quarter of a
second for so many, and a peer that sends nonsense should not get more."""


class Malformed(Exception):
    """Raised inside generated code only; always becomes a DecodeError or EncodeError."""


FAILURES = (Malformed, struct.error, IndexError, UnicodeError, AttributeError, TypeError, ValueError, OverflowError)


def malformed() -> Any:
    """Refuse, from within an expression."""
    raise Malformed


def check_uuid(value: bytes) -> bytes:
    """Return a UUID's octets; struct would pad or cut them in silence."""
    if len(value) != 16:
        raise Malformed
    return value


def check_bool(value: bool) -> bool:
    """Return a bool; struct would take any value for one."""
    if value is not True and value is not False:
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
            if value > UVARINT_MAX:
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
    if len(section) != len(unknown) + len(known):
        raise Malformed
    parts = [uvarint(len(section))]
    for number, data in sorted(section.items()):
        if not 0 <= number <= UVARINT_MAX:
            raise Malformed
        parts += uvarint(number), uvarint(len(data)), data
    return join(parts)


class Packers(dict[int, "Callable[..., bytes]"]):
    """Element count -> the pack method for so many elements of one struct code; at most PACK_MAX of them."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __missing__(self, count: int) -> Callable[..., bytes]:
        pack = self[count] = struct.Struct(">" + self.code * count).pack
        return pack


class _Plan(NamedTuple):
    """How to read elements whose string is this one."""

    string: bytes
    """The octets of length and content, as in every element."""
    value: Any
    stride: int
    checks: tuple[tuple[slice, int], ...]
    """Places with their stride, and the octet that must stand there in every element."""
    rows: Callable[[bytes], Any]


class Alike:
    """Reads an array whose elements all have the same string, and no tags: one bulk read, proven right first.

    An element is fixed fields, at most one string or bytes field, fixed fields. If element 0's string has ``k`` octets
    and so has every other, all have one size, and what stands at a place in one stands a fixed stride further in the
    next. Counting, with that stride, the octets that equal element 0's proves both at C speed, by induction: element
    0's length is where it is; if element 1 has the same octets there, element 2 is where it should be, and so on.

    The string met last is remembered with its plan: metadata is the same in commit after commit.
    """

    SAME_MAX = 40
    """Octets of the string beyond which comparing costs more than it saves."""

    def __init__(self, before: str, prefix: str, kind: str, after: str, zeros: tuple[int, ...], nullable: bool) -> None:
        """``before``, ``after``: struct codes, tag counts as padding; ``prefix``: code of the length, "" for no string.

        ``kind``: "str" or "bytes"; ``zeros``: places of tag counts, from the element's start or, if negative, its end.
        """
        self.codes = before, after
        self.sizes = struct.calcsize(">" + before), struct.calcsize(">" + after)
        self.zeros = zeros
        self.prefix = prefix
        self.text = kind == "str"
        self.nullable = nullable
        self.place = self.sizes[0]
        self.last = self._make(b"\1" if prefix == "B" else bytes(struct.calcsize(">" + prefix)), b"")

    def __call__(self, data: bytes, position: int, count: int) -> tuple[Any, Any, int] | None:
        """Return ``(rows of fixed fields, the string, position after the array)``, or None: read it one by one."""
        plan: _Plan | None = self.last
        string, value, stride, checks, rows = self.last
        place = position + self.place
        if data[place : place + len(string)] != string:
            plan = self._plan(data, place)
            if plan is None:
                return None
            string, value, stride, checks, rows = self.last = plan
        end = position + count * stride
        chunk = data[position:end]
        for places, octet in checks:
            if chunk[places].count(octet) != count:
                return None
        return rows(chunk), value, end

    def _plan(self, data: bytes, place: int) -> _Plan | None:
        size = struct.calcsize(">" + self.prefix)
        (length,) = struct.unpack_from(">" + self.prefix, data, place)
        length -= self.prefix == "B"
        if length < 0:
            return self._make(data[place : place + size], None) if self.nullable else None
        if size + length > self.SAME_MAX or place + size + length > len(data):
            return None
        return self._make(data[place : place + size + length], data[place + size : place + size + length])

    def _make(self, string: bytes, content: bytes | None) -> _Plan:
        stride = sum(self.sizes) + len(string)
        octets = [(self.place + index, octet) for index, octet in enumerate(string)]
        octets += [(zero % stride, 0) for zero in self.zeros]
        return _Plan(
            string=string,
            value=content.decode() if self.text and content is not None else content,
            stride=stride,
            checks=tuple((slice(place, None, stride), octet) for place, octet in octets),
            rows=struct.Struct(f">{self.codes[0]}{len(string)}x{self.codes[1]}").iter_unpack,
        )


def decode_failed(cls: type[Message], version: int, data: bytes, position: int) -> DecodeError:
    """Say what is wrong with bytes that the generated decoder refused."""
    if len(data) - position > DIAGNOSIS_SIZE_MAX:
        return DecodeError(cls.__name__, position, f"{len(data) - position} bytes do not have this layout")
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
