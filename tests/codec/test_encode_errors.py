"""Values that cannot be encoded raise EncodeError, in both codecs and for each field of every layout.

A wrong value replaces each field in turn. No other exception may be raised, and no wrong value may be encoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.declaration import Field, Struct, TaggedField, fields_of
from kproto.errors import EncodeError, StringTooLong
from kproto.interpret import InterpretedCodec
from kproto.message_codec import message_codec
from kproto.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from kproto.runtime import PACK_MIN
from tests.codec.bodies import SOURCES, Source, each_source
from tests.codec.strategies import (
    BITS,
    TAG_MAX,
    TEXT_SIZE_MAX,
    UNSIGNED_BITS,
    Edges,
    array_paths,
    bounds,
    with_array_size,
)

ONE = Edges(size=1, text=1)


def encode_error(source: Source, value: Any) -> EncodeError:
    """Check that both codecs raise the same EncodeError, and return it.

    The generated codec names a string that is too long exactly, construct only the tagged field that contains it.
    """
    with pytest.raises(EncodeError) as reference:
        InterpretedCodec(source.cls, source.version).encode(value)
    with pytest.raises(EncodeError) as generated:
        message_codec(source.cls, source.version).encode(value)
    if isinstance(generated.value, StringTooLong):
        assert generated.value.reason == reference.value.reason
        assert generated.value.path.startswith(reference.value.path)
    else:
        assert str(generated.value) == str(reference.value)
    return generated.value


def replaced(value: Any, path: tuple[str, ...], leaf: Any) -> Any:
    """Return the value with another leaf at a path; in an array, in its first element."""
    name, *rest = path
    inner = getattr(value, name)
    if rest and isinstance(inner, Struct):
        leaf = replaced(inner, tuple(rest), leaf)
    elif rest:
        leaf = (replaced(inner[0], tuple(rest), leaf), *inner[1:])
    return value.replace(**{name: leaf})


def paths(cls: type[Struct], version: int) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yield (path, field) for each field of a class and its structs, whether the version has it or not."""
    for field in fields_of(cls):
        yield (field.name,), field
        kind = field.type.element or field.type
        if kind.struct is not None and field.versions.covers(version):
            yield from (((field.name, *path), inner) for path, inner in paths(kind.struct, version))


class Other:
    """A value of no field's type."""


def wrong_values(kind: str) -> tuple[Any, ...]:
    if kind in BITS or kind in UNSIGNED_BITS:
        low, high = bounds(kind)
        return low - 1, high + 1, 2**100, "1", b"1", 1.0, Other()
    return {
        "bool": (0, 1, "true", Other()),
        "float64": ("1.0", 10**400, Other()),
        "string": ("s" * (TEXT_SIZE_MAX + 1), "ä" * (TEXT_SIZE_MAX // 2 + 1), "\ud800", b"bytes", 1, Other()),
        "bytes": ("text", "", 1, (1, 2), Other()),
        "records": ("text", "", 1, (1, 2), Other()),
        "uuid": (b"", bytes(15), bytes(17), "0123456789abcdef", 1, Other()),
        "array": (1, Other(), (Other(),)),
        "struct": (1, "text", (), Other()),
    }[kind]


@each_source
def test_a_value_of_another_type_or_size_is_refused(source: Source) -> None:
    value = ONE.of(source.cls, source.version)
    for path, field in paths(source.cls, source.version):
        if field.versions.covers(source.version):
            for wrong in wrong_values(field.type.kind):
                # 0 equals False, and a tagged field with its default is not written.
                if field.tag is None or wrong != field.default:
                    encode_error(source, replaced(value, path, wrong))


@each_source
def test_none_is_refused_unless_the_field_is_nullable(source: Source) -> None:
    value = ONE.of(source.cls, source.version)
    for path, field in paths(source.cls, source.version):
        if field.versions.covers(source.version) and not field.nullable_versions.covers(source.version):
            encode_error(source, replaced(value, path, None))


@each_source
def test_array_elements_of_another_type_are_refused(source: Source) -> None:
    value = ONE.of(source.cls, source.version)
    for path, field in paths(source.cls, source.version):
        if field.versions.covers(source.version) and field.type.element is not None:
            for wrong in (*wrong_values(field.type.element.kind), None):
                encode_error(source, replaced(value, path, (wrong,)))


def other_than(default: Any, field: Field) -> Any:
    """Return a value of the field's type other than its default."""
    if field.type.kind in ("array", "struct"):
        return (Other(),)
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return 0 if default else 1
    return b"\1" * 16 if field.type.kind == "uuid" else "other"


@each_source
def test_a_field_that_the_version_lacks_is_dropped_or_refused(source: Source) -> None:
    """Kafka's definition decides which: see test_declarations."""
    value = ONE.of(source.cls, source.version)
    data = message_codec(source.cls, source.version).encode(value)
    for path, field in paths(source.cls, source.version):
        if field.versions.covers(source.version):
            continue
        changed = replaced(value, path, other_than(field.default, field))
        if field.ignorable:
            assert message_codec(source.cls, source.version).encode(changed) == data, path
            assert InterpretedCodec(source.cls, source.version).encode(changed) == data, path
        else:
            assert field.name in encode_error(source, changed).path


@each_source
def test_unknown_tagged_fields_need_a_flexible_version(source: Source) -> None:
    value = ONE.of(source.cls, source.version).replace(unknown_tagged_fields=(TaggedField(1000, b""),))
    if source.cls._flexible.covers(source.version):
        assert message_codec(source.cls, source.version).encode(value)
    else:
        assert encode_error(source, value).path.endswith("unknown_tagged_fields")


FLEXIBLE = next(source for source in SOURCES if source.cls is OffsetCommitRequest and source.version == 8)


@pytest.mark.parametrize(
    "tags",
    [
        (TaggedField(-1, b""),),
        (TaggedField(TAG_MAX + 1, b""),),
        (TaggedField(7, b"one"), TaggedField(7, b"two")),
        (TaggedField(7, "text"),),  # type: ignore[arg-type]  # the wrong type is the test
        (TaggedField(7, None),),  # type: ignore[arg-type]
        (Other(),),
        7,
    ],
    ids=["negative", "33 bits", "twice", "text", "null", "another type", "not a tuple"],
)
def test_invalid_tagged_fields_are_refused(tags: Any) -> None:
    encode_error(FLEXIBLE, ONE.of(OffsetCommitRequest, 8).replace(unknown_tagged_fields=tags))


@each_source
def test_one_wrong_element_of_many_is_refused(source: Source) -> None:
    """Each element is checked even if many are packed at once."""
    one = ONE.of(source.cls, source.version)
    for path in array_paths(source.cls, source.version):
        many = with_array_size(one, path, PACK_MIN)
        elements = found_at(many, path)
        if isinstance(elements[0], Struct):
            for wrong in wrong_elements(elements[0], source.version):
                encode_error(source, replaced(many, path, (*elements[:-1], wrong)))


def found_at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = getattr(value[0] if type(value) is tuple else value, name)
    return value


def wrong_elements(good: Struct, version: int) -> Iterator[Any]:
    for field in fields_of(type(good)):
        if field.versions.covers(version):
            yield from (good.replace(**{field.name: wrong}) for wrong in wrong_values(field.type.kind)[:1])
        elif not field.ignorable:
            yield good.replace(**{field.name: other_than(field.default, field)})


def test_the_path_names_the_field_that_is_wrong() -> None:
    value = ONE.of(OffsetCommitRequest, 3)
    topic: OffsetCommitRequestTopic = value.topics[0]
    wrong = topic.partitions[0].replace(committed_metadata="x" * 40000)
    changed = value.replace(topics=(topic, topic.replace(partitions=(topic.partitions[0], wrong))))
    with pytest.raises(EncodeError) as caught:
        changed.encode(3)
    assert caught.value.path == "OffsetCommitRequest.topics[1].partitions[1].committed_metadata"
    assert "40000" in caught.value.reason
