"""A record of magic 2 as a construct declaration: the reference implementation of `kproto.records.record`.

Varints are bounded, and every size is compared with the bytes that are left before anything is read, as in
`kproto.primitives`. Only tests import this module.
"""

from __future__ import annotations

from typing import Any

from construct import Construct, Struct, ValidationError, stream_tell, stream_write

from kproto.errors import EncodeError
from kproto.jvm.text import text_of
from kproto.primitives import INTEGERS, bytes_left, read_exactly
from kproto.records.varint import varint, varlong


class SignedVarint(Construct):  # type: ignore[misc]  # construct is untyped
    """A zigzag varint of 32 or 64 bits."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = shift = 0
        byte = 0x80
        while byte & 0x80:
            if shift >= self.bits:
                raise ValidationError(f"varint of more than {self.bits} bits", path=path)
            byte = read_exactly(stream, 1, path)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
        if value >> self.bits:
            raise ValidationError(f"varint of more than {self.bits} bits", path=path)
        return (value >> 1) ^ -(value & 1)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        try:
            encoded = varint(obj) if self.bits == 32 else varlong(obj)
        except EncodeError as error:
            raise ValidationError(error.reason, path=path) from None
        stream_write(stream, encoded, len(encoded), path)
        return obj


VARINT = SignedVarint(32)
VARLONG = SignedVarint(64)


class VarintBytes(Construct):  # type: ignore[misc]
    """Bytes after a varint size; a negative size is null."""

    def _parse(self, stream: Any, context: Any, path: str) -> bytes | None:
        size = VARINT._parse(stream, context, path)
        return None if size < 0 else read_exactly(stream, size, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        VARINT._build(-1 if obj is None else len(obj), stream, context, path)
        if obj:
            stream_write(stream, obj, len(obj), path)
        return obj


class VarintString(VarintBytes):
    """UTF-8 after a varint size; not null."""

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        encoded = super()._parse(stream, context, path)
        if encoded is None:
            raise ValidationError("null, but a header has a key", path=path)
        return text_of(encoded)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        super()._build(obj.encode(), stream, context, path)
        return obj


class VarintArray(Construct):  # type: ignore[misc]
    """Elements after a varint count."""

    def __init__(self, element: Construct) -> None:
        super().__init__()
        self.element = element

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        count = VARINT._parse(stream, context, path)
        if not 0 <= count <= bytes_left(stream):
            raise ValidationError(f"{count} elements announced, {bytes_left(stream)} bytes left", path=path)
        return [self.element._parsereport(stream, context, f"{path}[{i}]") for i in range(count)]

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        VARINT._build(len(obj), stream, context, path)
        for index, item in enumerate(obj):
            self.element._build(item, stream, context, f"{path}[{index}]")
        return obj


class VarintSized(Construct):  # type: ignore[misc]
    """A struct after its varint size, which it must fill."""

    def __init__(self, subcon: Construct) -> None:
        super().__init__()
        self.subcon = subcon

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        size = VARINT._parse(stream, context, path)
        if not 0 <= size <= bytes_left(stream):
            raise ValidationError(f"{size} bytes announced, {bytes_left(stream)} left", path=path)
        end = stream_tell(stream, path) + size
        value = self.subcon._parsereport(stream, context, path)
        if stream_tell(stream, path) != end:
            raise ValidationError(f"the record does not fill its {size} bytes", path=path)
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        encoded = self.subcon.build(obj)
        VARINT._build(len(encoded), stream, context, path)
        stream_write(stream, encoded, len(encoded), path)
        return obj


HEADER = Struct("key" / VarintString(), "value" / VarintBytes())

RECORD = VarintSized(
    Struct(
        "attributes" / INTEGERS["int8"],
        "timestamp_delta" / VARLONG,
        "offset_delta" / VARINT,
        "key" / VarintBytes(),
        "value" / VarintBytes(),
        "headers" / VarintArray(HEADER),
    )
)
