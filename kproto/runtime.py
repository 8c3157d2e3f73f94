"""The functions that generated codecs call: varints, tag sections, bulk reads, and the diagnosis of failures.

Theory of operation. Generated code only distinguishes success from failure: a refused input raises one of `FAILURES`
somewhere inside. `decode_failed` and `encode_failed` then run the interpreted codec on the same input, which is slow
but names the wrong field. Only this diagnosis imports construct; a broker that serves correct clients never does.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.declaration import STRING_SIZE_MAX, TaggedField
from kproto.errors import DecodeError, EncodeError, KprotoError, StringTooLong, TooManyElements
from kproto.jvm.text import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.declaration import VersionedStruct

new: Callable[..., Any] = tuple.__new__
join = b"".join

BULK_READ_MIN = 3
"""Count of elements from which reading an array in bulk is faster than a loop."""
PACK_MIN, PACK_MAX = 8, 512
"""Counts of elements that one struct call packs: below, a loop is faster; above, the kept struct is too large."""

UVARINT_MAX = 0xFFFFFFFF
UNLIMITED = 1 << 62
"""Elements that a message may have unless the caller limits them: more than there is memory for."""
DIAGNOSIS_SIZE_MAX = 1 << 14
"""Bytes of the largest body that the interpreted codec reads again to name the wrong field: it takes up to 60 ms for
that many, and a hostile peer must not get more."""


class Malformed(KprotoError):
    """Raised inside generated code only; the generated function turns it into a DecodeError or EncodeError."""


FAILURES = (Malformed, struct.error, IndexError, UnicodeError, AttributeError, TypeError, ValueError, OverflowError)


def malformed() -> Any:
    """Raise Malformed; a function, so that an expression can raise."""
    raise Malformed


def check_uuid(value: bytes) -> bytes:
    """Return a UUID of 16 bytes, or raise Malformed; struct pads or truncates silently."""
    if len(value) != 16:
        raise Malformed
    return value


def check_bool(value: bool) -> bool:
    """Return a bool, or raise Malformed; struct takes any value for a bool."""
    if value is not True and value is not False:
        raise Malformed
    return value


def more_uvarint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Read the rest of an unsigned varint whose first byte, already read, has its high bit set."""
    # Most have two or three bytes: without a loop for these, a batch of records is checked in 0.85 of the time.
    byte = data[position]
    value = first & 0x7F | byte << 7
    if byte < 0x80:
        return value, position + 1
    byte = data[position + 1]
    value = value & 0x3FFF | byte << 14
    if byte < 0x80:
        return value, position + 2
    value &= 0x1FFFFF
    for shift in (21, 28):
        position += 1
        byte = data[position + 1]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > UVARINT_MAX:
                break
            return value, position + 2
    raise Malformed


def read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits; return ``(value, position after it)``."""
    first = data[position]
    return (first, position + 1) if first < 0x80 else more_uvarint(data, position + 1, first)


def long_uvarint(value: int) -> bytes:
    """Return an unsigned varint as bytes."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


UVARINTS = tuple(bytes((n,)) for n in range(0x80))
"""The unsigned varints of one byte, by value."""


def uvarint(value: int) -> bytes:
    """Return an unsigned varint as bytes."""
    return UVARINTS[value] if value < 0x80 else long_uvarint(value)


def too_many_elements() -> Any:
    """Raise TooManyElements."""
    raise TooManyElements


def unknown_tags(data: bytes, position: int, count: int, left: int) -> tuple[tuple[TaggedField, ...], int, int]:
    """Read ``count`` tagged fields of a struct that declares none.

    Return the fields, the position after them, and how many of ``left`` elements are left.
    """
    if count > 0x7F:
        count, position = more_uvarint(data, position, count)
    left -= count
    if left < 0:
        raise TooManyElements
    found = []
    for _ in range(count):
        number, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        end = position + size
        if end > len(data):
            raise Malformed
        found.append(TaggedField(number, data[position:end]))
        position = end
    return tuple(found), position, left


def tag_section(unknown: tuple[TaggedField, ...], known: dict[int, bytes]) -> bytes:
    """Return the tag section: count, then fields in rising order of their tags.

    Raises Malformed if two fields have the same tag, or a tag is not a uint32.
    """
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
    """Element count -> the pack method for that many elements of one struct code; at most PACK_MAX entries."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __missing__(self, count: int) -> Callable[..., bytes]:
        pack = self[count] = struct.Struct(">" + self.code * count).pack
        return pack


class _Plan(NamedTuple):
    """How to read elements that contain one certain string."""

    string: bytes
    """Length and content of the string, as encoded in every element."""
    value: Any
    stride: int
    """Bytes of one element."""
    checks: tuple[tuple[slice, int], ...]
    """(one byte position of every element, the value that each of these bytes must have)."""
    rows: Callable[[bytes], Any]


class UniformArray:
    """Reads an array in bulk if all elements contain the same string and no tags; proves that first.

    Theory of operation. An element is fixed-size fields, at most one string or bytes field, fixed-size fields. Suppose
    that the string of element 0 is encoded in ``k`` bytes. If all elements contain the same string, all have the same
    size (the stride), and each byte of the string recurs once per stride. ``chunk[position::stride].count(byte)``
    checks one such byte in all elements in one C call, and a handful of these checks is the whole proof, by induction:
    the length of element 0 is where it should be; if element 1 has the same bytes one stride later, it has the same
    size, so that element 2 begins where it should, and so on. Then one ``iter_unpack`` reads all fixed fields, with the
    string as padding.

    The plan for the last string is kept: the metadata of commits is mostly the same in commit after commit.
    """

    COMPARED_SIZE_MAX = 40
    """Bytes of the longest string that is compared byte by byte; beyond that, the loop is faster."""

    def __init__(self, before: str, prefix: str, kind: str, after: str, zeros: tuple[int, ...], nullable: bool) -> None:
        """``before``, ``after``: struct codes, with padding for a tag count; ``prefix``: code of the string's length.

        ``kind``: "str" or "bytes"; ``zeros``: positions of tag counts, from the element's start or, if negative, its
        end.
        """
        self.codes = before, after
        self.sizes = struct.calcsize(">" + before), struct.calcsize(">" + after)
        self.zeros = zeros
        self.prefix = prefix
        self.is_text = kind == "str"
        self.nullable = nullable
        self.string_position = self.sizes[0]
        self.last_plan = self._make_plan(b"\1" if prefix == "B" else bytes(struct.calcsize(">" + prefix)), b"")

    def __call__(self, data: bytes, position: int, count: int) -> tuple[Any, Any, int] | None:
        """Return ``(rows of fixed fields, the string, position after the array)``; None if the elements differ."""
        plan: _Plan | None = self.last_plan
        string, value, stride, checks, rows = self.last_plan
        string_position = position + self.string_position
        if data[string_position : string_position + len(string)] != string:
            plan = self._plan_for(data, string_position)
            if plan is None:
                return None
            string, value, stride, checks, rows = self.last_plan = plan
        end = position + count * stride
        chunk = data[position:end]
        # A chunk that the end of the data cuts short has fewer than ``count`` of some checked byte.
        for positions, byte in checks:
            if chunk[positions].count(byte) != count:
                return None
        return rows(chunk), value, end

    def _plan_for(self, data: bytes, position: int) -> _Plan | None:
        """Return the plan for the string that is encoded at this position; None if it is null, too long or cut."""
        size = struct.calcsize(">" + self.prefix)
        (length,) = struct.unpack_from(">" + self.prefix, data, position)
        length -= self.prefix == "B"  # a compact length is one more; one above 127 exceeds COMPARED_SIZE_MAX anyway
        if length < 0:
            return self._make_plan(data[position : position + size], None) if self.nullable else None
        if size + length > self.COMPARED_SIZE_MAX or position + size + length > len(data):
            return None
        end = position + size + length
        return self._make_plan(data[position:end], data[position + size : end])

    def _make_plan(self, string: bytes, content: bytes | None) -> _Plan:
        stride = sum(self.sizes) + len(string)
        checked = [(self.string_position + index, byte) for index, byte in enumerate(string)]
        checked += [(zero % stride, 0) for zero in self.zeros]
        return _Plan(
            string=string,
            value=None if content is None else content.decode() if self.is_text else bytes(content),
            stride=stride,
            checks=tuple((slice(position, None, stride), byte) for position, byte in checked),
            rows=struct.Struct(f">{self.codes[0]}{len(string)}x{self.codes[1]}").iter_unpack,
        )


class ReplacingBytes(bytes):
    """Bytes of which each slice is decoded as text by `text_of`, so that generated code accepts malformed text."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        found: Any = super().__getitem__(key)
        return ReplacingBytes(found) if type(key) is slice else found

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return text_of(bytes(self))


def decode_malformed_text(
    decode: Callable[[bytes, int, int], tuple[Any, int]], data: bytes, position: int, elements_max: int
) -> tuple[Any, int]:
    """Return what a generated decoder returns for bytes whose text is not UTF-8, with replacement characters in it.

    Theory of operation. Generated code decodes text strictly, the fastest way. When that fails, which no correct client
    causes, the same code runs again on bytes that replace malformed text: it takes several times longer.
    """
    value, end = decode(ReplacingBytes(data), position, elements_max)
    return _with_plain_bytes(value), end


def _with_plain_bytes(value: Any) -> Any:
    """Return a value with `bytes` in the place of `ReplacingBytes`."""
    if type(value) is ReplacingBytes:
        return bytes(value)
    return new(type(value), map(_with_plain_bytes, value)) if isinstance(value, tuple) else value


def decode_failed(cls: type[VersionedStruct], version: int, data: bytes, position: int) -> DecodeError:
    """Return the error that names what is wrong with bytes that the generated decoder refused."""
    if len(data) - position > DIAGNOSIS_SIZE_MAX:
        return DecodeError(cls.__name__, position, f"{len(data) - position} bytes do not have this layout")
    from kproto.interpret import InterpretedCodec

    try:
        InterpretedCodec(cls, version).decode(data, position)
    except DecodeError as error:
        return error
    return DecodeError(cls.__name__, position, "refused")


def encode_failed(cls: type[VersionedStruct], version: int, value: Any, cause: Exception) -> EncodeError:
    """Return the error that names what is wrong with a value that the generated encoder refused."""
    too_long = _too_long(value, cls.__name__)
    if too_long is not None:
        return too_long
    from kproto.interpret import InterpretedCodec

    try:
        InterpretedCodec(cls, version).encode(value)
    except EncodeError as error:
        return error
    return EncodeError(cls.__name__, str(cause) or "refused")


def _too_long(value: Any, path: str) -> StringTooLong | None:
    """Return the error for the first string within a value that is too long; None if there is none."""
    if isinstance(value, str):
        size = len(value.encode("utf-8", "replace"))
        reason = f"string of {size} bytes, the most is {STRING_SIZE_MAX}"
        return StringTooLong(path, reason) if size > STRING_SIZE_MAX else None
    if not hasattr(value, "__len__") or isinstance(value, bytes | bytearray | memoryview):
        return None
    names = getattr(value, "_fields", None)
    for index, item in enumerate(value):  # a tuple, or an array that makes its elements
        found = _too_long(item, f"{path}[{index}]" if names is None else f"{path}.{names[index]}")
        if found is not None:
            return found
    return None
