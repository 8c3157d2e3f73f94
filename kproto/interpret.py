"""From a declaration to construct: the plain path that everything else is held against.

``construct_of(OffsetCommitRequest, 3)`` is a construct tree for version 3; `kproto.generate` walks the same tree.
`InterpretedCodec` decodes and encodes with it, and turns construct's many exceptions into the two documented ones.
"""

from __future__ import annotations

import io
import re
import struct
from typing import TYPE_CHECKING, Any

from construct import Construct, ConstructError, Struct

from kproto import declaration
from kproto.declaration import Field, Message, WireType, fields_of
from kproto.errors import DecodeError, EncodeError, UnsupportedVersion
from kproto.primitives import (
    INTEGERS,
    Boolean,
    KafkaArray,
    KafkaBytes,
    KafkaString,
    KnownTag,
    NullableStruct,
    Octets16,
    TypedStruct,
)

if TYPE_CHECKING:
    from collections.abc import Callable


_constructs: dict[tuple[type[Any], int, bool | None], TypedStruct] = {}


def construct_of(cls: type[declaration.Struct], version: int, *, flexible: bool | None = None) -> TypedStruct:
    """Return the construct of a declared class in one version.

    ``flexible`` is the message's own rule unless given (nested structs follow their message).

    Raises:
        UnsupportedVersion: a message that does not declare this version.
    """
    found = _constructs.get((cls, version, flexible))
    if found is None:
        found = _constructs[cls, version, flexible] = _construct(cls, version, flexible)
    return found


def _construct(cls: type[declaration.Struct], version: int, flexible: bool | None) -> TypedStruct:
    if flexible is None:
        message = _as_message(cls)
        if not message._versions.covers(version):
            raise UnsupportedVersion(getattr(cls, "_api_key", -1), version)
        flexible = message._flexible.covers(version)
    fields = fields_of(cls)
    plain, absent, tags = [], [], {}
    for index, field in enumerate(fields):
        if not field.versions.covers(version):
            if not field.ignorable:
                absent.append((field.name, index, field.default))
        elif field.tag is not None and field.tag.versions.covers(version):
            assert flexible, f"{cls.__name__}.{field.name} is tagged in version {version}, which has no tags"
            tags[field.tag.number] = KnownTag(field.name, index, _field(field, version, flexible), field.default)
        else:
            plain.append(field.name / _field(field, version, flexible))
    return TypedStruct(
        cls,
        Struct(*plain),
        defaults=(*(f.default for f in fields), ()),
        absent=tuple(absent),
        tags=tags if flexible else None,
    )


def _as_message(cls: type[Any]) -> type[Message]:
    assert issubclass(cls, Message), f"{cls.__name__} is no message: say whether it is flexible"
    return cls


def _field(field: Field, version: int, flexible: bool) -> Construct:
    nullable = field.nullable_versions.covers(version)
    return _wire(field.type, version, flexible and not field.never_compact, nullable)


def _wire(kind: WireType, version: int, flexible: bool, nullable: bool) -> Construct:
    match kind.kind:
        case "bool":
            return Boolean()
        case "string":
            return KafkaString(compact=flexible, nullable=nullable)
        case "bytes" | "records":
            return KafkaBytes(compact=flexible, nullable=nullable)
        case "uuid":
            return Octets16()
        case "array":
            assert kind.element is not None
            return KafkaArray(_wire(kind.element, version, flexible, False), compact=flexible, nullable=nullable)
        case "struct":
            assert kind.struct is not None
            inner = construct_of(kind.struct, version, flexible=flexible)
            return NullableStruct(inner) if nullable else inner
        case number:
            return INTEGERS[number]


class InterpretedCodec:
    """Decode and encode one message in one version by walking its construct tree."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version
        self.construct = construct_of(cls, version)

    def decode(self, data: bytes, position: int = 0) -> tuple[Any, int]:
        """Return ``(value, position after it)``.

        Raises:
            DecodeError: truncated or hostile bytes.
        """
        stream = io.BytesIO(data)
        stream.seek(position)
        value = self._guard(lambda: self.construct.parse_stream(stream), stream)
        return value, stream.tell()

    def encode(self, value: Any) -> bytes:
        """Return the body.

        Raises:
            EncodeError: a field's value has no form in this version.
        """
        stream = io.BytesIO()
        try:
            self.construct.build_stream(value, stream)
        except ConstructError as error:
            raise EncodeError(*_path_and_reason(error, self.cls.__name__)) from None
        except (struct.error, AttributeError, TypeError, IndexError, ValueError, OverflowError) as error:
            raise EncodeError(self.cls.__name__, str(error)) from None
        return stream.getvalue()

    def _guard(self, read: Callable[[], Any], stream: io.BytesIO) -> Any:
        try:
            return read()
        except ConstructError as error:
            path, reason = _path_and_reason(error, self.cls.__name__)
            raise DecodeError(path, stream.tell(), reason) from None


_PATH_LINE = re.compile(r"Error in path (.*)\n?")
_ROOT = re.compile(r"^\((parsing|building)\)")


def _path_and_reason(error: ConstructError, name: str) -> tuple[str, str]:
    """construct puts the path into its text; take the two apart again."""
    text = str(error)
    found = _PATH_LINE.match(text)
    reason = _PATH_LINE.sub("", text).strip()
    path = found[1] if found else error.path or ""
    path = _ROOT.sub(name, path).replace(" -> ", ".") or name
    return path, reason or type(error).__name__
