"""Values in which no two fields are equal, for comparison with the codecs of other projects.

Numbers and strings count up from field to field, so that a peer which confuses two neighboring fields is detected.
Numbers are small and error codes are known ones, because some peers check fields more strictly than the protocol.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kproto.declaration import Field, Struct, WireType, fields_of
from kproto.message import Message
from tests.codec.strategies import made


class Variant(NamedTuple):
    """Properties of a value."""

    size: int
    """Elements of each array."""
    null: bool = False
    """Whether nullable fields are null."""
    defaults: bool = False
    """Whether tagged fields have their default, so that they are not written."""


VARIANTS = (
    Variant(size=0),
    Variant(size=0, null=True),
    Variant(size=1),
    Variant(size=1, defaults=True),
    Variant(size=3),
    Variant(3, null=True),
)

ERROR_CODES = 100
"""A limit: Kafka has more, but peers may not know the newest."""


class DistinctValue:
    """Builds one value."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.count = 0

    def message(self, cls: type[Message], version: int) -> Any:
        return self._struct(cls, version)

    def _struct(self, cls: type[Struct], version: int) -> Any:
        return made(cls, (*(self._field(field, version) for field in fields_of(cls)), ()))

    def _field(self, field: Field, version: int) -> Any:
        if not field.versions.covers(version) or (self.variant.defaults and field.tag is not None):
            return field.default
        if self.variant.null and field.nullable_versions.covers(version):
            return None
        return self._value(field.type, version, field.name)

    def _value(self, kind: WireType, version: int, name: str) -> Any:
        if kind.element is not None:
            return tuple(self._value(kind.element, version, name) for _ in range(self.variant.size))
        if kind.struct is not None:
            return self._struct(kind.struct, version)
        self.count += 1
        match kind.kind:
            case "bool":
                return self.count % 2 == 1
            case "string":
                return f"{name} {self.count}"
            case "bytes" | "records":
                return f"{name} {self.count}".encode()
            case "uuid":
                return self.count.to_bytes(16, "big")
            case "float64":
                return self.count + 0.5
            case "int8":
                return self.count % 128
            case _:
                return self.count % ERROR_CODES if name.endswith("error_code") else self.count


def values(cls: type[Message], version: int) -> list[Any]:
    """Return a value of each variant."""
    return [DistinctValue(variant).message(cls, version) for variant in VARIANTS]
