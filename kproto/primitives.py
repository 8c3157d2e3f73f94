"""The primitive wire types as construct classes, for what construct lacks or does not bound.

construct's own ``VarInt`` reads without end; its ``PascalString`` and ``PrefixedArray`` know no null and allocate as
many bytes as a length announces. The classes here compare every length with the bytes that are left before they
allocate.

Wire (Kafka protocol guide; KIP-482 for the compact types; rules BA-6, BA-7):
    string   int16 length, UTF-8;           compact: unsigned varint length + 1; null is -1, compact 0
    bytes    int32 length, bytes;           compact: unsigned varint length + 1; null is -1, compact 0
    array    int32 count, elements;         compact: unsigned varint count + 1;  null is -1, compact 0
    uuid     16 bytes
    struct?  int8, negative for null, then the struct
    tags     unsigned varint count, then per field: varint tag, varint size, content
"""

from __future__ import annotations

import io
from typing import Any

from construct import (
    Construct,
    Float64b,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    StreamError,
    Struct,
    ValidationError,
    stream_tell,
    stream_write,
)

from kproto.declaration import STRING_SIZE_MAX, TaggedField
from kproto.jvm.text import text_of

INTEGERS: dict[str, Construct] = {
    "int8": Int8sb, "int16": Int16sb, "uint16": Int16ub, "int32": Int32sb, "uint32": Int32ub, "int64": Int64sb,
    "float64": Float64b,
}  # fmt: skip

UVARINT_MAX = 0xFFFFFFFF
UVARINT_BYTES_MAX = 5
"""Bytes of the longest unsigned varint: 32 bits, seven in each byte."""


def bytes_left(stream: Any) -> int:
    """Return the number of bytes after the stream's position: the most that a length may announce."""
    size: int = stream.getbuffer().nbytes
    return size - int(stream.tell())


def read_exactly(stream: Any, size: int, path: str) -> bytes:
    """Read ``size`` bytes, or raise StreamError and leave the position. Allocates no more than the bytes left."""
    data: bytes = stream.read(max(size, 0))
    if len(data) != size:
        stream.seek(-len(data), io.SEEK_CUR)
        raise StreamError(f"{size} bytes announced, {bytes_left(stream)} left", path=path)
    return data


class Boolean(Construct):  # type: ignore[misc]  # construct is untyped
    """One byte; any value but 0 is true."""

    def _parse(self, stream: Any, context: Any, path: str) -> bool:
        return read_exactly(stream, 1, path) != b"\0"

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if not isinstance(obj, bool):
            raise ValidationError(f"{obj!r} is not a bool", path=path)
        stream.write(b"\1" if obj else b"\0")
        return obj


class UVarint(Construct):  # type: ignore[misc]
    """Unsigned varint of at most 32 bits: seven bits in each byte, least significant first."""

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = 0
        for index in range(UVARINT_BYTES_MAX):
            byte = read_exactly(stream, 1, path)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                break
        else:
            raise ValidationError("varint of more than 5 bytes", path=path)
        if value > UVARINT_MAX:
            raise ValidationError("varint of more than 32 bits", path=path)
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        value = obj
        if not 0 <= value <= UVARINT_MAX:
            raise ValidationError(f"{value} is not an unsigned number of 32 bits", path=path)
        while value > 0x7F:
            stream.write(bytes([value & 0x7F | 0x80]))
            value >>= 7
        stream.write(bytes([value]))
        return obj


UVARINT = UVarint()


class Prefixed(Construct):  # type: ignore[misc]
    """A type behind a length or count, which may mean null: ``prefix``, or None for an unsigned varint (compact)."""

    def __init__(self, prefix: Construct | None, nullable: bool) -> None:
        super().__init__()
        self.prefix = prefix
        self.nullable = nullable

    @property
    def compact(self) -> bool:
        return self.prefix is None

    def _length(self, stream: Any, context: Any, path: str) -> int | None:
        """Read the length; None is null. As in Kafka, any negative length means null in a nullable field."""
        if self.prefix is None:
            length = UVARINT._parse(stream, context, path) - 1
        else:
            length = self.prefix._parse(stream, context, path)
        if length >= 0:
            return int(length)
        if not self.nullable:
            raise ValidationError("null, but the field can't be null", path=path)
        return None

    def _put_length(self, length: int | None, stream: Any, context: Any, path: str) -> None:
        if length is None and not self.nullable:
            raise ValidationError("null, but the field can't be null", path=path)
        number = -1 if length is None else length
        if self.prefix is None:
            UVARINT._build(number + 1, stream, context, path)
        else:
            self.prefix._build(number, stream, context, path)


class KafkaString(Prefixed):
    """Text of at most 32767 bytes of UTF-8."""

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        super().__init__(None if compact else Int16sb, nullable)

    def _parse(self, stream: Any, context: Any, path: str) -> str | None:
        length = self._length(stream, context, path)
        if length is None:
            return None
        if length > STRING_SIZE_MAX:
            raise ValidationError(f"string of {length} bytes, the most is {STRING_SIZE_MAX}", path=path)
        return text_of(read_exactly(stream, length, path))

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        data = None if obj is None else obj.encode()
        if data is not None and len(data) > STRING_SIZE_MAX:
            raise ValidationError(f"string of {len(data)} bytes, the most is {STRING_SIZE_MAX}", path=path)
        self._put_length(None if data is None else len(data), stream, context, path)
        if data:
            stream.write(data)
        return obj


class KafkaBytes(Prefixed):
    """Bytes; the type of record sets too."""

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        super().__init__(None if compact else Int32sb, nullable)

    def _parse(self, stream: Any, context: Any, path: str) -> bytes | None:
        length = self._length(stream, context, path)
        return None if length is None else read_exactly(stream, length, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if not isinstance(obj, bytes | bytearray | memoryview | None):
            raise ValidationError(f"{type(obj).__name__} is not bytes", path=path)
        self._put_length(None if obj is None else len(obj), stream, context, path)
        if obj:
            stream.write(bytes(obj))
        return obj


class KafkaArray(Prefixed):
    """Elements of one type. A count above the bytes left is refused: every element has at least one byte."""

    def __init__(self, element: Construct, *, compact: bool, nullable: bool) -> None:
        super().__init__(None if compact else Int32sb, nullable)
        self.element = element

    def _parse(self, stream: Any, context: Any, path: str) -> tuple[Any, ...] | None:
        count = self._length(stream, context, path)
        if count is None:
            return None
        if count > bytes_left(stream):
            raise ValidationError(f"{count} elements announced, {bytes_left(stream)} bytes left", path=path)
        return tuple(self.element._parse(stream, context, f"{path}[{i}]") for i in range(count))

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self._put_length(None if obj is None else len(obj), stream, context, path)
        for index, item in enumerate(obj or ()):
            self.element._build(item, stream, context, f"{path}[{index}]")
        return obj


class UuidBytes(Construct):  # type: ignore[misc]
    """A UUID as its 16 bytes."""

    def _parse(self, stream: Any, context: Any, path: str) -> bytes:
        return read_exactly(stream, 16, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if len(obj) != 16:
            raise ValidationError(f"a UUID has 16 bytes, not {len(obj)}", path=path)
        stream_write(stream, obj, 16, path)
        return obj


class NullableStruct(Construct):  # type: ignore[misc]
    """A struct behind one byte that is negative for null."""

    def __init__(self, subcon: Construct) -> None:
        super().__init__()
        self.subcon = subcon

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        absent = Int8sb._parse(stream, context, path) < 0
        return None if absent else self.subcon._parse(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        Int8sb._build(-1 if obj is None else 1, stream, context, path)
        return None if obj is None else self.subcon._build(obj, stream, context, path)


class KnownTag:
    """A declared tagged field: its index in the value, its construct, and the default that is not written."""

    def __init__(self, name: str, index: int, subcon: Construct, default: Any) -> None:
        self.name = name
        self.index = index
        self.subcon = subcon
        self.default = default


class TypedStruct(Construct):  # type: ignore[misc]
    """A declared class in one version: construct's ``Struct`` of the fields present, then the tag section.

    ``subcon`` has the untagged fields, which are read and written here: construct's ``Struct`` would take twice as
    long. ``absent`` has the fields that this version lacks and must not drop silently, ``tags`` the tagged fields by
    number, or None if the version is not flexible.
    """

    def __init__(
        self,
        cls: Any,
        subcon: Struct,
        *,
        defaults: tuple[Any, ...],
        absent: tuple[tuple[str, int, Any], ...],
        tags: dict[int, KnownTag] | None,
    ) -> None:
        super().__init__()
        self.cls = cls
        self.subcon = subcon
        self.indices = {name: index for index, name in enumerate(self.cls._fields)}
        self.untagged = tuple((self.indices[f.name], f.subcon, f" -> {f.name}") for f in subcon.subcons)
        self.defaults = defaults
        self.absent = absent
        self.tags = tags

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        values = list(self.defaults)
        for index, subcon, name in self.untagged:
            values[index] = subcon._parse(stream, context, path + name)
        if self.tags is not None:
            values[-1] = self._parse_tags(values, stream, context, path)
        return tuple.__new__(self.cls, values)

    def _parse_tags(self, values: list[Any], stream: Any, context: Any, path: str) -> tuple[TaggedField, ...]:
        assert self.tags is not None
        unknown = []
        for _ in range(UVARINT._parse(stream, context, f"{path}.tags")):
            number = UVARINT._parse(stream, context, f"{path}.tags")
            size = UVARINT._parse(stream, context, f"{path}.tags")
            known = self.tags.get(number)
            if known is None:
                unknown.append(TaggedField(number, read_exactly(stream, size, f"{path}.tags")))
                continue
            end = stream_tell(stream, path) + size
            values[known.index] = known.subcon._parse(stream, context, f"{path}.{known.name}")
            if stream_tell(stream, path) != end:
                raise ValidationError(f"tag {number} does not fill its {size} bytes", path=f"{path}.{known.name}")
        return tuple(unknown)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for name, index, default in self.absent:
            if obj[index] != default:
                raise ValidationError("this version has no such field", path=f"{path}.{name}")
        for index, subcon, name in self.untagged:
            subcon._build(obj[index], stream, context, path + name)
        if self.tags is not None:
            self._build_tags(obj, stream, context, path)
        elif obj[-1]:
            raise ValidationError("this version has no tagged fields", path=f"{path}.unknown_tagged_fields")
        return obj

    def _build_tags(self, obj: Any, stream: Any, context: Any, path: str) -> None:
        assert self.tags is not None
        if not obj[-1] and not self.tags:
            stream.write(b"\0")
            return
        section: dict[int, bytes] = {unknown.tag: unknown.data for unknown in obj[-1]}
        set_ = {number: known for number, known in self.tags.items() if obj[known.index] != known.default}
        for number, known in set_.items():
            try:
                section[number] = known.subcon.build(obj[known.index])
            except ValidationError as error:
                raise ValidationError(str(error), path=f"{path}.{known.name}") from None
        if len(section) != len(set_) + len(obj[-1]):
            raise ValidationError("two tagged fields with the same number", path=f"{path}.unknown_tagged_fields")
        UVARINT._build(len(section), stream, context, path)
        for number, data in sorted(section.items()):
            UVARINT._build(number, stream, context, path)
            UVARINT._build(len(data), stream, context, path)
            stream.write(data)
