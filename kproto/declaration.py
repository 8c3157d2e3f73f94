"""The words in which messages are declared: typed classes whose annotations are their layout on the wire.

Theory of operation. A message is one class for all its versions::

    class OffsetCommitRequestPartition(Struct):
        partition_index: Int32
        committed_offset: Int64
        committed_leader_epoch: Annotated[Int32, since(6), ignorable] = -1
        committed_metadata: NullableString

Type checkers and editors see keyword-only, frozen classes with fields of ``int``, ``str``, ``tuple`` ... The metadata
of the annotations gives the wire type, the versions in which the field exists, the versions in which it may be null,
and its tag. `fields_of` reads the metadata; `kproto.interpret` builds a ``construct`` tree for one version from it, and
`kproto.generate` turns that tree into Python source. Annotations stay strings until then (PEP 563): importing a message
only creates its classes, and serving does not import construct.

Values are tuples underneath (type checkers do not see that), not dataclasses: a tuple is the cheapest immutable value
with named fields that Python has, and a commit of a hundred partitions creates a hundred of them. The last item of each
tuple is ``unknown_tagged_fields``.

A field without a default is required when a value is created. A field that some version lacks always has a default: the
decoder returns it for such a version.

This module is the lowest layer after `kproto.errors`: it knows no codec. The base classes that encode and decode
themselves are in `kproto.message`.
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
"""The upper end of an open version range: the largest int16, which is the wire type of versions."""


class VersionRange(NamedTuple):
    """The versions ``first`` to ``last``, both included."""

    first: int
    last: int = NEWEST

    def covers(self, version: int) -> bool:
        """Whether the version is within the range."""
        return self.first <= version <= self.last


ALL = VersionRange(0)
NONE = VersionRange(1, 0)


def since(first: int) -> VersionRange:
    """Declare that the field exists from version ``first`` on."""
    return VersionRange(first)


def until(last: int) -> VersionRange:
    """Declare that the field exists up to version ``last``."""
    return VersionRange(0, last)


def only(first: int, last: int | None = None) -> VersionRange:
    """Declare that the field exists in versions ``first`` to ``last``, by default in ``first`` only."""
    return VersionRange(first, first if last is None else last)


class Nullable(NamedTuple):
    """The versions in which the field may be null."""

    versions: VersionRange


def nullable(versions: VersionRange = ALL) -> Nullable:
    """Declare that the field may be null in these versions."""
    return Nullable(versions)


class Tag(NamedTuple):
    """The number of a tagged field (KIP-482) and the versions in which the field is tagged."""

    number: int
    versions: VersionRange


def tag(number: int, versions: VersionRange = ALL) -> Tag:
    """Declare that the field is in the tag section, under ``number``."""
    return Tag(number, versions)


class Ignorable:
    """Marker: a version without the field drops a value other than the default instead of refusing it."""


ignorable: Ignorable = Ignorable()


class NeverCompact:
    """Marker: the field is not compact in flexible versions either (a request header's client id)."""


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


STRING_SIZE_MAX = 0x7FFF
"""Bytes of the longest string: the largest int16, which Kafka checks for compact strings too."""


class TaggedField(NamedTuple):
    """A tagged field that is not declared; ``data`` is its content without tag and size."""

    tag: int
    data: bytes


class WireType(NamedTuple):
    """A field's type: a primitive's name, ``"array"`` (of ``element``) or ``"struct"`` (of class ``struct``)."""

    kind: str
    element: WireType | None = None
    struct: type[Struct] | None = None


class Field(NamedTuple):
    """A declared field: the content of its annotation, and its default."""

    name: str
    type: WireType
    versions: VersionRange
    nullable_versions: VersionRange
    tag: Tag | None
    ignorable: bool
    never_compact: bool
    default: Any


_tuple_new = tuple.__new__


def _compile_new(cls: type[Any], **values: Any) -> Any:
    """Create the first value of a class: compile the keyword-only constructor, install it, and call it.

    Compiling takes 40 µs, and a process uses few of the classes that it imports: the cost falls on those only.
    """
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
        # Annotations are the fields, in wire order; private ones (class variables) are none. Defaults leave the
        # namespace, where an accessor takes their name.
        fields = (*(f for f in namespace.get("__annotations__", ()) if f[0] != "_"), "unknown_tagged_fields")
        defaults = {f: namespace.pop(f) for f in fields if f in namespace}
        defaults.setdefault("unknown_tagged_fields", ())
        namespace["__slots__"] = ()
        namespace["_fields"] = fields
        namespace["_defaults"] = defaults
        namespace["__new__"] = _compile_new
        for index, field in enumerate(fields):
            namespace[field] = _tuplegetter(index, None)
        return super().__new__(mcls, name, bases, namespace, **options)


if TYPE_CHECKING:

    @dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=True)
    class Struct:
        """A typed, immutable value with named fields; subclasses declare them as annotations."""

        unknown_tagged_fields: tuple[TaggedField, ...] = ()
        """Tagged fields that are not declared; the encoder writes them back."""
        _secrets: ClassVar[frozenset[str]] = frozenset()
        """The fields whose values `repr` leaves out, as Kafka's classes do."""

        def _hides(self, name: str) -> bool:
            """Return whether `repr` leaves out the value of a field."""
            ...

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

        _secrets = frozenset()

        def _hides(self, name):
            return name in self._secrets

        def __repr__(self):
            names = self._fields if self.unknown_tagged_fields else self._fields[:-1]
            shown = (f"{n}=<secret>" if self._hides(n) else f"{n}={getattr(self, n)!r}" for n in names)
            return f"{type(self).__name__}({', '.join(shown)})"

        def __reduce__(self):
            return _unpickle, (type(self), tuple(self))

        def replace(self, **changes):
            """Return a copy with these fields changed."""
            return type(self)(**(dict(zip(self._fields, self, strict=True)) | changes))


def _unpickle(cls: type[Any], values: tuple[Any, ...]) -> Any:
    return _tuple_new(cls, values)


class VersionedStruct(Struct):
    """A struct with declared ``versions``, flexible (KIP-482) from version ``flexible`` on.

    `kproto.message.Message` adds encoding and decoding. A plain `Struct` has the version of the message around it.
    """

    _versions: ClassVar[VersionRange]
    _flexible: ClassVar[VersionRange]
    _api_key: ClassVar[int] = -1
    """Kafka's number of the API; -1 for a message that is not a request or response."""
    _has_slices: ClassVar[bool] = False
    """Whether values may be so large that an encoder exists that makes them piece by piece."""

    def __init_subclass__(
        cls,
        *,
        versions: tuple[int, int] = (0, 0),
        flexible: int | None = None,
        api_key: int = -1,
        has_slices: bool = False,
    ) -> None:
        cls._versions = VersionRange(*versions)
        cls._flexible = NONE if flexible is None else VersionRange(flexible)
        cls._api_key = api_key
        cls._has_slices = has_slices


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
    """Split an annotation into its wire type and its other notes; ``X | None`` is ``X`` (see `Nullable`)."""
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
