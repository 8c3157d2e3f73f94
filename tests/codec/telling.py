"""Values in which no two fields look alike: what other codecs are asked to read.

Numbers and texts are counted up from field to field, so that a field that a peer takes for its neighbour shows. They
are small and named errors stay known errors, as some peers hold fields to more than the wire does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kproto.declaration import Field, Struct, WireType, fields_of
from kproto.message import Message
from tests.codec.strategies import made


class Form(NamedTuple):
    """What a value is made like."""

    size: int
    """Elements of each array."""
    null: bool = False
    """Whether fields that may be null are."""
    defaults: bool = False
    """Whether fields that have a default have that, as tagged fields are then not written."""


FORMS = (
    Form(size=0),
    Form(size=0, null=True),
    Form(size=1),
    Form(size=1, defaults=True),
    Form(size=3),
    Form(3, null=True),
)

ERROR_CODES = 100
"""Kafka has more, peers may not know the newest."""


class Teller:
    """Makes one value."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.count = 0

    def message(self, cls: type[Message], version: int) -> Any:
        return self._struct(cls, version)

    def _struct(self, cls: type[Struct], version: int) -> Any:
        return made(cls, (*(self._field(field, version) for field in fields_of(cls)), ()))

    def _field(self, field: Field, version: int) -> Any:
        if not field.versions.covers(version) or (self.form.defaults and field.tag is not None):
            return field.default
        if self.form.null and field.nullable_versions.covers(version):
            return None
        return self._value(field.type, version, field.name)

    def _value(self, kind: WireType, version: int, name: str) -> Any:
        if kind.element is not None:
            return tuple(self._value(kind.element, version, name) for _ in range(self.form.size))
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
    """Return a value of each form."""
    return [Teller(form).message(cls, version) for form in FORMS]
