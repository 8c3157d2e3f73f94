"""From a declaration to a construct tree: the reference implementation of every codec.

``construct_of(OffsetCommitRequest, 3)`` returns a construct tree for version 3; `kproto.generate` walks the same tree.
`InterpretedCodec` decodes and encodes with it, and maps construct's many exceptions to DecodeError and EncodeError.
"""

from __future__ import annotations

import io
import re
import struct
from typing import TYPE_CHECKING, Any

from construct import Construct, ConstructError, Struct

from kproto import declaration
from kproto.declaration import Field, VersionedStruct, WireType, fields_of
from kproto.errors import DecodeError, EncodeError, TooManyElements, UnsupportedVersion
from kproto.primitives import (
    INTEGERS,
    Boolean,
    KafkaArray,
    KafkaBytes,
    KafkaString,
    KnownTag,
    NullableStruct,
    TypedStruct,
    UuidBytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_constructs: dict[tuple[type[Any], int, bool | None], TypedStruct] = {}


def construct_of(cls: type[declaration.Struct], version: int, *, flexible: bool | None = None) -> TypedStruct:
    """Return the construct of a declared class in one version.

    ``flexible`` is given for a nested struct, which follows the message around it; a message has a rule of its own.

    Raises:
        UnsupportedVersion: the message does not declare this version.
    """
    found = _constructs.get((cls, version, flexible))
    if found is None:
        found = _constructs[cls, version, flexible] = _construct(cls, version, flexible)
    return found


def _construct(cls: type[declaration.Struct], version: int, flexible: bool | None) -> TypedStruct:
    if flexible is None:
        assert issubclass(cls, VersionedStruct), f"{cls.__name__} has no versions: flexible must be given"
        if not cls._versions.covers(version):
            raise UnsupportedVersion(cls._api_key, version)
        flexible = cls._flexible.covers(version)
    fields = fields_of(cls)
    untagged, absent, tags = [], [], {}
    for index, field in enumerate(fields):
        if not field.versions.covers(version):
            if not field.ignorable:
                absent.append((field.name, index, field.default))
        elif field.tag is not None and field.tag.versions.covers(version):
            assert flexible, f"{cls.__name__}.{field.name} is tagged in version {version}, which has no tags"
            tags[field.tag.number] = KnownTag(field.name, index, _field(field, version, flexible), field.default)
        else:
            untagged.append(field.name / _field(field, version, flexible))
    return TypedStruct(
        cls,
        Struct(*untagged),
        defaults=(*(f.default for f in fields), ()),
        absent=tuple(absent),
        tags=tags if flexible else None,
    )


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
            return UuidBytes()
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

    def __init__(self, cls: type[VersionedStruct], version: int) -> None:
        self.cls = cls
        self.version = version
        self.construct = construct_of(cls, version)

    def decode(self, data: bytes, position: int = 0, elements_max: int | None = None, /) -> tuple[Any, int]:
        """Return ``(value, position after it)``.

        Raises:
            DecodeError: the bytes are truncated, hostile, or do not have this layout.
            TooManyElements: arrays and tag sections have more than ``elements_max`` elements together.
        """
        stream = io.BytesIO(data)
        stream.seek(position)
        try:
            value = self.construct.parse_stream(stream)
        except ConstructError as error:
            path, reason = _path_and_reason(error, self.cls.__name__)
            raise DecodeError(path, stream.tell(), reason) from None
        if elements_max is not None and _element_count(value) > elements_max:
            raise TooManyElements
        return value, stream.tell()

    def encode(self, value: Any, join: Callable[[list[bytes]], bytes] = b"".join, /) -> bytes:
        """Return the body; ``join`` as in `MessageCodec`.

        Raises:
            EncodeError: a field's value cannot be written in this version.
        """
        stream = io.BytesIO()
        try:
            self.construct.build_stream(value, stream)
        except ConstructError as error:
            raise EncodeError(*_path_and_reason(error, self.cls.__name__)) from None
        except (struct.error, AttributeError, TypeError, IndexError, ValueError, OverflowError) as error:
            raise EncodeError(self.cls.__name__, str(error)) from None
        return join([stream.getvalue()])


_PATH_LINE = re.compile(r"Error in path (.*)\n?")
_ROOT = re.compile(r"^\((parsing|building)\)")


def _element_count(value: Any) -> int:
    """Return how many elements the arrays and tag sections of a value have."""
    if not isinstance(value, tuple) or isinstance(value, declaration.TaggedField):
        return 0
    own = 0 if isinstance(value, declaration.Struct) else len(value)
    return own + sum(map(_element_count, value))


def _path_and_reason(error: ConstructError, name: str) -> tuple[str, str]:
    """Split the text of a construct error, which contains its path, into path and reason."""
    text = str(error)
    found = _PATH_LINE.match(text)
    reason = _PATH_LINE.sub("", text).strip()
    path = found[1] if found else error.path or ""
    path = _ROOT.sub(name, path).replace(" -> ", ".") or name
    return path, reason or type(error).__name__
