"""How a message is declared: a typed class whose annotations are its layout on the wire.

Theory of operation. A message is one class for all its versions::

    class OffsetCommitRequestPartition(Struct):
        partition_index: Int32
        committed_offset: Int64
        committed_leader_epoch: Annotated[Int32, since(6), ignorable] = -1
        committed_metadata: NullableString

A type checker and an editor see plain keyword-only, frozen classes of ``int``, ``str``, ``tuple`` ... The metadata of
the annotations says the rest: the wire type, the versions in which the field exists, whether it may be null, its tag.
`fields_of` reads them; `kproto.interpret` turns them into a ``construct`` tree for one version, and `kproto.generate`
turns that tree into Python source. Annotations are strings until then (PEP 563), so that importing a message costs no
more than making its classes, and serving does not import construct at all.

Values are tuples underneath (`Struct` hides that from type checkers), which makes decoding a hundred partitions as
cheap as Python allows; this is why they are not dataclasses. The last item of each is ``unknown_tagged_fields``.

A field without a default is required when a value is made. A field that some version lacks always has a default: it
is what decoding such a version yields.
"""

from __future__ import annotations

import sys
from _collections import _tuplegetter  # type: ignore[import-not-found]  # namedtuple's own; C speed
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

NEWEST = 32767
"""The upper end of an open version range: versions are int16 on the wire."""


class VersionRange(NamedTuple):
    """The versions ``first`` to ``last``, both included."""

    first: int
    last: int = NEWEST

    def covers(self, version: int) -> bool:
        return self.first <= version <= self.last


ALL = VersionRange(0)
NONE = VersionRange(1, 0)


def since(first: int) -> VersionRange:
    """The field exists from version ``first`` on."""
    return VersionRange(first)


def until(last: int) -> VersionRange:
    """The field exists up to version ``last``."""
    return VersionRange(0, last)


def only(first: int, last: int | None = None) -> VersionRange:
    """The field exists in versions ``first`` to ``last`` (``first`` alone if not given)."""
    return VersionRange(first, first if last is None else last)


class Nullable(NamedTuple):
    """The versions in which the field may be null."""

    versions: VersionRange


def nullable(versions: VersionRange = ALL) -> Nullable:
    """The field may be null in these versions."""
    return Nullable(versions)


class Tag(NamedTuple):
    """A tagged field (KIP-482): its number, and the versions in which it is tagged."""

    number: int
    versions: VersionRange


def tag(number: int, versions: VersionRange = ALL) -> Tag:
    """The field stands in the tag section, under ``number``."""
    return Tag(number, versions)


class Ignorable:
    """Marker: in a version without the field, a value other than the default is dropped, not refused."""


ignorable: Ignorable = Ignorable()


class NeverCompact:
    """Marker: the field keeps its plain form in flexible versions too (a request header's client id)."""


never_compact: NeverCompact = NeverCompact()


class Wire(NamedTuple):
    """A primitive wire type, by Kafka's name for it."""

    kind: str


class _ArrayOf:
    """Marker: an array of the annotated tuple's element type."""


T = TypeVar("T")
Bool = Annotated[bool, Wire("bool")]
Int8 = Annotated[int, Wire("int8")]
Int16 = Annotated[int, Wire("int16")]
UInt16 = Annotated[int, Wire("uint16")]
Int32 = Annotated[int, Wire("int32")]
UInt32 = Annotated[int, Wire("uint32")]
Int64 = Annotated[int, Wire("int64")]
Float64 = Annotated[float, Wire("float64")]
String = Annotated[str, Wire("string")]
NullableString = Annotated[str | None, Wire("string"), nullable()]
Bytes = Annotated[bytes, Wire("bytes")]
NullableBytes = Annotated[bytes | None, Wire("bytes"), nullable()]
Records = Annotated[bytes, Wire("records")]
NullableRecords = Annotated[bytes | None, Wire("records"), nullable()]
Uuid = Annotated[bytes, Wire("uuid")]
Array = Annotated[tuple[T, ...], _ArrayOf()]

ZERO_UUID = bytes(16)

DEFAULTS: dict[str, Any] = {
    "bool": False, "int8": 0, "int16": 0, "uint16": 0, "int32": 0, "uint32": 0, "int64": 0, "float64": 0.0,
    "string": "", "bytes": b"", "records": b"", "uuid": ZERO_UUID, "array": (), "struct": None,
}  # fmt: skip


class TaggedField(NamedTuple):
    """A tagged field that the declaration does not know; ``data`` is its content without tag and size."""

    tag: int
    data: bytes


class WireType(NamedTuple):
    """A field's type: a primitive's name, ``"array"`` (of ``element``) or ``"struct"`` (of class ``struct``)."""

    kind: str
    element: WireType | None = None
    struct: type[Struct] | None = None


class Field(NamedTuple):
    """Everything that a declaration says of one field."""

    name: str
    type: WireType
    versions: VersionRange
    nullable_versions: VersionRange
    tag: Tag | None
    ignorable: bool
    never_compact: bool
    default: Any


_tuple_new = tuple.__new__


def _slow_new(cls: type[Any], **values: Any) -> Any:
    """First construction of a class: compile its keyword-only constructor and put it in this function's place."""
    defaults = cls._defaults
    head = ", ".join(name if name not in defaults else f"{name}=_d[{name!r}]" for name in cls._fields)
    body = ", ".join(cls._fields)
    namespace: dict[str, Any] = {"_d": defaults, "_new": _tuple_new}
    exec(f"def __new__(cls, *, {head}): return _new(cls, ({body},))", namespace)  # noqa: S102 - as namedtuple does
    cls.__new__ = namespace["__new__"]
    return cls(**values)


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=True)
class _StructMeta(type):
    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        fields = (*(f for f in namespace.get("__annotations__", ()) if f[0] != "_"), "unknown_tagged_fields")
        defaults = {f: namespace.pop(f) for f in fields if f in namespace}
        defaults.setdefault("unknown_tagged_fields", ())
        namespace["__slots__"] = ()
        namespace["_fields"] = fields
        namespace["_defaults"] = defaults
        namespace["__new__"] = _slow_new
        for index, field in enumerate(fields):
            namespace[field] = _tuplegetter(index, None)
        return super().__new__(mcls, name, bases, namespace, **options)


if TYPE_CHECKING:

    @dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=True)
    class Struct:
        """A typed, immutable value with named fields; subclasses declare them as annotations."""

        unknown_tagged_fields: tuple[TaggedField, ...] = ()
        """Tagged fields that the declaration does not know; written back when the value is encoded."""

        def replace(self, **changes: Any) -> Self:
            """Return a copy with these fields changed."""
            ...

else:

    class Struct(tuple, metaclass=_StructMeta):
        __doc__ = "A typed, immutable value with named fields; subclasses declare them as annotations."

        def __eq__(self, other):
            return type(self) is type(other) and tuple.__eq__(self, other)

        def __ne__(self, other):
            return not self == other

        __hash__ = tuple.__hash__

        def __repr__(self):
            names = self._fields if self.unknown_tagged_fields else self._fields[:-1]
            return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"

        def __reduce__(self):
            return _unpickle, (type(self), tuple(self))

        def replace(self, **changes):
            """Return a copy with these fields changed."""
            return type(self)(**(dict(zip(self._fields, self, strict=True)) | changes))


def _unpickle(cls: type[Any], values: tuple[Any, ...]) -> Any:
    return _tuple_new(cls, values)


class Message(Struct):
    """A value with a layout of its own: ``versions`` are declared, flexible from version ``flexible_from`` on."""

    if TYPE_CHECKING:
        _versions: ClassVar[VersionRange]
        _flexible: ClassVar[VersionRange]

    def __init_subclass__(cls, *, versions: tuple[int, int] = (0, 0), flexible: int | None = None) -> None:
        cls._versions = VersionRange(*versions)
        cls._flexible = NONE if flexible is None else VersionRange(flexible)

    def encode(self, version: int) -> bytes:
        """Return the body in this version, without header and size.

        Raises:
            EncodeError: a field's value has no form in this version.
            UnsupportedVersion: the version is not declared.
        """
        from kproto import registry

        return registry.message_codec(type(self), version).encode(self)

    @classmethod
    def decode(cls, data: bytes, version: int) -> Self:
        """Read one body that fills ``data`` exactly; trailing bytes are refused.

        Raises:
            DecodeError: truncated, hostile, or not this layout.
            UnsupportedVersion: the version is not declared.
        """
        from kproto import registry

        value: Self = registry.decode_exactly(cls, data, version)
        return value


class Request(Message):
    """A request body; ``api_key`` is Kafka's number of the API."""

    if TYPE_CHECKING:
        _api_key: ClassVar[int]

    def __init_subclass__(cls, *, api_key: int, versions: tuple[int, int], flexible: int | None = None) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls._api_key = api_key


class Response(Message):
    """A response body; ``api_key`` is Kafka's number of the API."""

    if TYPE_CHECKING:
        _api_key: ClassVar[int]

    def __init_subclass__(cls, *, api_key: int, versions: tuple[int, int], flexible: int | None = None) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls._api_key = api_key


_resolved: dict[type[Struct], tuple[Field, ...]] = {}


def fields_of(cls: type[Struct]) -> tuple[Field, ...]:
    """Return the declared fields of a class, in wire order."""
    found = _resolved.get(cls)
    if found is None:
        found = _resolved[cls] = tuple(_resolve(cls))
    return found


def _resolve(cls: type[Any]) -> list[Field]:
    scope = {**globals(), **vars(sys.modules[cls.__module__])}
    annotations: Mapping[str, str] = cls.__annotations__
    defaults = cls._defaults
    return [_field(name, eval(text, scope), defaults) for name, text in annotations.items()]  # noqa: S307 - our own source


def _field(name: str, annotation: Any, defaults: Mapping[str, Any]) -> Field:
    kind, notes = _unwrap(annotation)
    ranges = [n for n in notes if isinstance(n, VersionRange)]
    tags = [n for n in notes if isinstance(n, Tag)]
    nulls = [n.versions for n in notes if isinstance(n, Nullable)]
    return Field(
        name=name,
        type=kind,
        versions=ranges[0] if ranges else ALL,
        nullable_versions=nulls[0] if nulls else NONE,
        tag=tags[0] if tags else None,
        ignorable=ignorable in notes,
        never_compact=never_compact in notes,
        default=defaults.get(name, DEFAULTS[kind.kind]),
    )


def _unwrap(annotation: Any) -> tuple[WireType, list[Any]]:
    """Split an annotation into its wire type and its other notes; ``X | None`` is ``X`` here (`Nullable` says when)."""
    notes: list[Any] = []
    if get_origin(annotation) is Annotated:
        annotation, *notes = get_args(annotation)
    wires = [n for n in notes if isinstance(n, Wire)]
    if wires:
        return WireType(wires[0].kind), notes
    if any(isinstance(n, _ArrayOf) for n in notes):
        element, _ = _unwrap(get_args(annotation)[0])
        return WireType("array", element=element), notes
    if get_origin(annotation) in _UNIONS:
        inner, more = _unwrap(next(a for a in get_args(annotation) if a is not type(None)))
        return inner, notes + more
    return WireType("struct", struct=annotation), notes


_UNIONS = (Union, type(int | None))
