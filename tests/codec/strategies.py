"""Hypothesis strategies and edge cases from declarations: values that can be encoded in one version.

Arrays have the contents for which the generated codec has different code: few elements of any kind, or many elements
that are equal, have equal strings, or are equal except for one. Sizes are around the limits of that code.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from kproto import registry
from kproto.declaration import Field, Struct, TaggedField, WireType, fields_of
from kproto.message import Message
from kproto.messages import APIS
from kproto.runtime import BULK_READ_MIN, PACK_MIN

EXAMPLES = settings().max_examples // 20
"""Examples for each of the many layouts: 5 by default."""

LAYOUTS: tuple[tuple[type[Message], int], ...] = tuple(
    (cls, version)
    for key in APIS
    for cls in (registry.request_class(key), registry.response_class(key))
    for version in range(cls._versions.first, cls._versions.last + 1)
)
"""Every message of every API in every version."""

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED_BITS = {"uint16": 16, "uint32": 32}
SIZES = (0, 1, 2, BULK_READ_MIN - 1, BULK_READ_MIN, PACK_MIN - 1, PACK_MIN, PACK_MIN + 5)
TEXT_SIZES = (0, 1, 126, 127, 128)
"""Bytes; 126 is the last with a compact length of one byte, 127 the first with two."""
TEXT_SIZE_MAX = 32767
TAG_MAX = 2**32 - 1


def bounds(kind: str) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    if kind in UNSIGNED_BITS:
        return 0, 2 ** UNSIGNED_BITS[kind] - 1
    return -(2 ** (BITS[kind] - 1)), 2 ** (BITS[kind] - 1) - 1


def texts() -> st.SearchStrategy[str]:
    sized = st.sampled_from([*("a" * size for size in TEXT_SIZES), "ä" * 63, "ä" * 64, "\0", "𝄞"])
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | sized


def binaries() -> st.SearchStrategy[bytes]:
    return st.binary(max_size=6) | st.sampled_from([bytes(size) for size in TEXT_SIZES])


@functools.cache
def primitives(kind: str) -> st.SearchStrategy[Any]:
    match kind:
        case "bool":
            return st.booleans()
        case "string":
            return texts()
        case "bytes" | "records":
            return binaries()
        case "uuid":
            return st.binary(min_size=16, max_size=16)
        case "float64":
            return st.floats(allow_nan=False)
        case _:
            low, high = bounds(kind)
            return st.sampled_from([low, -1 if low else 1, 0, high]) | st.integers(low, high)


def values(kind: WireType, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if kind.kind == "array":
        assert kind.element is not None
        return arrays(values(kind.element, version, flexible))
    if kind.struct is not None:
        return structs(kind.struct, version, flexible)
    return primitives(kind.kind)


def arrays(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    few = st.lists(elements, max_size=3).map(tuple)
    sizes = st.sampled_from(SIZES)
    equal = st.builds(lambda element, size: (element,) * size, elements, sizes)
    equal_strings = st.builds(
        lambda element, size: tuple(varied(element, index) for index in range(size)), elements, sizes
    )
    one_differs = st.builds(
        lambda element, size, other, index: (element,) * min(index, size) + (other,) + (element,) * (size - index),
        elements, sizes, elements, st.integers(0, SIZES[-1]),
    )  # fmt: skip
    return few | equal | equal_strings | one_differs


def varied(element: Any, index: int) -> Any:
    """Return the element with another number in its first integer field, as partitions differ."""
    if not isinstance(element, Struct):
        return element
    for field in fields_of(type(element)):
        if field.type.kind in BITS and field.tag is None and getattr(element, field.name) != field.default:
            return element.replace(**{field.name: index})
    return element


_structs: dict[tuple[type[Any], int, bool], st.SearchStrategy[Any]] = {}


def structs(cls: type[Struct], version: int, flexible: bool) -> st.SearchStrategy[Any]:
    """Values of a class that can be encoded in this version."""
    found = _structs.get((cls, version, flexible))
    if found is None:
        found = _structs[cls, version, flexible] = _make_structs(cls, version, flexible)
    return found


def _make_structs(cls: type[Struct], version: int, flexible: bool) -> st.SearchStrategy[Any]:
    items = [field_values(field, version, flexible) for field in fields_of(cls)]
    items.append(unknown_tags(cls, version) if flexible else st.just(()))
    return st.tuples(*items).map(lambda found: made(cls, found))


def made(cls: type[Struct], items: tuple[Any, ...]) -> Any:
    return tuple.__new__(cls, items)  # type: ignore[type-var]  # a Struct is a tuple; type checkers do not know


def field_values(field: Field, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if not field.versions.covers(version):
        return st.just(field.default)
    value = values(field.type, version, flexible)
    if field.nullable_versions.covers(version):
        value = st.none() | value
    return st.just(field.default) | value if field.tag is not None else value


def unknown_tags(cls: type[Struct], version: int) -> st.SearchStrategy[tuple[TaggedField, ...]]:
    """Tagged fields that the class does not declare in this version, in rising order, in which they are decoded."""
    present = [field for field in fields_of(cls) if field.versions.covers(version)]
    declared = {field.tag.number for field in present if field.tag is not None}
    numbers = (st.integers(0, 8) | st.integers(0, 200) | st.integers(0, TAG_MAX)).filter(
        lambda number: number not in declared
    )
    some = st.dictionaries(numbers, binaries(), max_size=2).map(
        lambda found: tuple(TaggedField(*item) for item in sorted(found.items()))
    )
    return st.just(()) | some


def messages(cls: type[Message], version: int) -> st.SearchStrategy[Any]:
    """Values of a message that can be encoded in this version."""
    return structs(cls, version, cls._flexible.covers(version))


class Edges:
    """An edge case: all fields of one type have the same value."""

    def __init__(self, *, size: int = 0, text: int = 0, high: bool = False, null: bool = False, tags: int = 0) -> None:
        self.size = size
        self.text = text
        self.high = high
        self.null = null
        self.tags = tags

    def __repr__(self) -> str:
        return f"Edges({', '.join(f'{name}={value!r}' for name, value in vars(self).items() if value)})"

    def of(self, cls: type[Message], version: int) -> Any:
        return self._struct(cls, version, cls._flexible.covers(version))

    def _struct(self, cls: type[Struct], version: int, flexible: bool) -> Any:
        items = [self._field(field, version, flexible) for field in fields_of(cls)]
        unknown = [TaggedField(TAG_MAX - index, bytes(self.text)) for index in reversed(range(self.tags))]
        return made(cls, (*items, tuple(unknown) if flexible else ()))

    def _field(self, field: Field, version: int, flexible: bool) -> Any:
        if not field.versions.covers(version):
            return field.default
        if self.null and field.nullable_versions.covers(version):
            return None
        return self._value(field.type, version, flexible)

    def _value(self, kind: WireType, version: int, flexible: bool) -> Any:
        if kind.kind == "array":
            assert kind.element is not None
            return (self._value(kind.element, version, flexible),) * self.size
        if kind.struct is not None:
            return self._struct(kind.struct, version, flexible)
        match kind.kind:
            case "string":
                return "s" * self.text
            case "bytes" | "records":
                return b"b" * self.text
            case "bool":
                return self.high
            case "uuid":
                return (b"\xff" if self.high else b"\0") * 16
            case "float64":
                return 1.7976931348623157e308 if self.high else -0.5
            case number:
                return bounds(number)[self.high]


def edges() -> Iterator[Edges]:
    """Edge cases for any message; nested messages have a few kilobytes at most."""
    yield Edges()
    yield Edges(null=True)
    yield Edges(null=True, size=1)
    yield Edges(high=True, size=1, text=1, tags=1)
    for text in TEXT_SIZES[2:]:
        yield Edges(size=1, text=text, tags=1)
    yield Edges(size=1, text=TEXT_SIZE_MAX)
    for size in (2, BULK_READ_MIN):
        yield Edges(size=size, high=True, text=2)
    yield Edges(size=2, tags=127)
    yield Edges(size=1, tags=128)


def array_paths(cls: type[Struct], version: int) -> Iterator[tuple[str, ...]]:
    """The names that lead to each array within a class in a version."""
    for field in fields_of(cls):
        if not field.versions.covers(version):
            continue
        kind = field.type
        if kind.element is not None:
            yield (field.name,)
            kind = kind.element
        if kind.struct is not None:
            yield from ((field.name, *path) for path in array_paths(kind.struct, version))


def with_array_size(value: Any, path: tuple[str, ...], size: int) -> Any:
    """Return the value with ``size`` elements, which differ only in a number, in one of its arrays."""
    name, *rest = path
    inner = getattr(value, name)
    if rest:
        return value.replace(**{name: with_size_within(inner, tuple(rest), size)})
    return value.replace(**{name: tuple(varied(inner[0], index % 100) for index in range(size))})


def with_size_within(inner: Any, path: tuple[str, ...], size: int) -> Any:
    if isinstance(inner, Struct):
        return with_array_size(inner, path, size)
    return tuple(with_array_size(item, path, size) for item in inner)
