"""Hostile bytes: one documented error, the same result of both codecs, and memory within a multiple of the frame.

Each hostile number replaces each size field of valid bodies of every layout; Hypothesis adds random damage.
`decode_with_both` fails if one codec accepts a body that the other refuses.
"""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.declaration import Array, Field, Int8, Struct, TaggedField, fields_of, since
from kproto.errors import DecodeError
from kproto.jvm.text import text_of
from kproto.message import Message
from kproto.message_codec import message_codec
from kproto.messages.k03_metadata import MetadataRequest
from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.messages.k11_join_group import JoinGroupRequest
from kproto.runtime import BULK_READ_MIN, DIAGNOSIS_SIZE_MAX, ReplacingBytes
from tests.codec.bodies import SOURCES, SizeField, Source, decode_with_both, each_source, size_fields
from tests.codec.strategies import EXAMPLES, TEXT_SIZE_MAX, Edges, array_paths, messages, with_array_size

if TYPE_CHECKING:
    from kproto.message_codec import Decode

PLAIN = Edges(size=1, text=2, high=True)
TAGGED = Edges(size=1, text=2, tags=1)


@each_source
@pytest.mark.parametrize("edge", [PLAIN, TAGGED], ids=str)
def test_every_truncation_is_refused(source: Source, edge: Edges) -> None:
    body = message_codec(source.cls, source.version).encode(edge.of(source.cls, source.version))
    for size in range(len(body)):
        assert decode_with_both(source, body[:size]) is None


@each_source
def test_truncations_of_arrays_that_are_read_in_bulk_are_refused(source: Source) -> None:
    """A bulk read neither continues after the end nor returns fewer elements than announced."""
    codec, one = message_codec(source.cls, source.version), PLAIN.of(source.cls, source.version)
    for path in array_paths(source.cls, source.version):
        body = codec.encode(with_array_size(one, path, BULK_READ_MIN))
        for size in range(1, len(body), max(1, len(body) // 16)):
            assert decode_with_both(source, body[:size]) is None


INT16S = ("7fff", "8000", "ffff", "fffe")
INT32S = ("7fffffff", "80000000", "ffffffff", "40000000", "00007fff")
VARINTS = (
    "ffffffff07",  # 2^31-1
    "8080808008",  # 2^31
    "ffffffff0f",  # 2^32-1
    "8080808004",  # 2^30
    "818002",  # 32769: a string of 32768 bytes
    "8000",  # 0 in two bytes
    "00",  # null
)
TOO_LONG = tuple(map(bytes.fromhex, ("ffffffff1f", "ffffffff7f", "808080808001", "80808080808080808080")))
"""Varints of 33 and of 35 bits, of six bytes, and without end."""


def hostile_numbers(field: SizeField) -> tuple[bytes, ...]:
    if field.compact:
        return (*map(bytes.fromhex, VARINTS), *TOO_LONG)
    return tuple(map(bytes.fromhex, INT16S if field.size == 2 else INT32S))


@each_source
def test_hostile_lengths_counts_and_tags_give_the_same_result(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    body = message_codec(source.cls, source.version).encode(TAGGED.of(source.cls, source.version))
    for field in size_fields(source, body, monkeypatch):
        for number in hostile_numbers(field):
            hostile = body[: field.position] + number + body[field.position + field.size :]
            assert decode_with_both(source, hostile) is None or number not in TOO_LONG


MALFORMED = {
    "c328": "\ufffd(",
    "eda0": "\ufffd",  # the beginning of a surrogate
    "eda080": "\ufffd",
    "eda07f": "\ufffd\x7f",
    "edbfbf41": "\ufffdA",
    "ed9f": "\ufffd",  # the beginning of a character
    "e08080": "\ufffd\ufffd\ufffd",  # a character in more bytes than it needs
    "e1eda080": "\ufffd\ufffd",
    "f0808080": "\ufffd\ufffd\ufffd\ufffd",
    "f09f98": "\ufffd",
    "f4908080": "\ufffd\ufffd\ufffd\ufffd",
    "ff": "\ufffd",
    "c080": "\ufffd\ufffd",
    "80bf": "\ufffd\ufffd",
    "ffc328eda080": "\ufffd\ufffd(\ufffd",  # measured on 0.10.2.2, 2.8.2 and 4.4.0
}
"""Bytes, and the text that Java decodes them as (java.lang.String of OpenJDK 17)."""


@pytest.mark.parametrize("malformed", MALFORMED)
def test_malformed_text_is_replaced_as_in_java(malformed: str) -> None:
    assert text_of(bytes.fromhex(malformed)) == MALFORMED[malformed]
    assert text_of(b"a" + bytes.fromhex(malformed) + b"z") == f"a{MALFORMED[malformed]}z"


@each_source
def test_text_that_is_not_utf_8_is_decoded_with_replacement_characters(source: Source) -> None:
    """Both codecs accept it; a value of bytes stays as it is."""
    body = message_codec(source.cls, source.version).encode(Edges(size=1, text=2).of(source.cls, source.version))
    for position in range(len(body) - 1):
        if body[position : position + 2] == b"ss":
            for hexadecimal in ("c328", "eda0", "bbbb"):
                hostile = body[:position] + bytes.fromhex(hexadecimal) + body[position + 2 :]
                found = decode_with_both(source, hostile)
                assert found is not None
                assert text_of(bytes.fromhex(hexadecimal)) in strings_of(found[0])
                assert ReplacingBytes not in types_of(found[0])


def strings_of(value: Any) -> list[str]:
    if isinstance(value, tuple):
        return [found for item in value for found in strings_of(item)]
    return [value] if isinstance(value, str) else []


def types_of(value: Any) -> set[type]:
    inner = (types_of(item) for item in value) if isinstance(value, tuple) else ()
    return {type(value)}.union(*inner)


LONGEST = b"\x80\x80\x02" + b"s" * TEXT_SIZE_MAX
TOO_LONG_BY_ONE = b"\x81\x80\x02" + b"s" * (TEXT_SIZE_MAX + 1)


@pytest.mark.parametrize(
    "source", [source for source in SOURCES if source.cls._flexible.covers(source.version)], ids=str
)
def test_a_compact_string_has_the_limit_of_an_int16_length(source: Source) -> None:
    """Its length can announce more, which Kafka refuses."""
    codec = message_codec(source.cls, source.version)
    body = codec.encode(Edges(size=1, text=TEXT_SIZE_MAX).of(source.cls, source.version))
    pieces = body.split(LONGEST)
    for index in range(1, len(pieces)):
        before, after = LONGEST.join(pieces[:index]), LONGEST.join(pieces[index:])
        assert codec.decode(before + LONGEST + after, 0)[1] == len(body)
        with pytest.raises(DecodeError):
            codec.decode(before + TOO_LONG_BY_ONE + after, 0)


def known_tags(source: Source) -> dict[int, Field]:
    found = [
        field for field in fields_of(source.cls) if field.tag is not None and field.versions.covers(source.version)
    ]
    return {field.tag.number: field for field in found if field.tag is not None}


WITH_TAGS = tuple(source for source in SOURCES if known_tags(source))


@pytest.mark.parametrize("source", WITH_TAGS, ids=str)
def test_a_known_tag_must_fill_its_size(source: Source) -> None:
    """Bytes that are valid for an unknown tag must have the field's type under the number of a known tag."""
    for number, field in known_tags(source).items():
        value = Edges().of(source.cls, source.version).replace(**{field.name: field.default})
        wrong = value.replace(unknown_tagged_fields=(TaggedField(number, b"\1" * 37),))
        assert decode_with_both(source, message_codec(source.cls, source.version).encode(wrong)) is None


damage = st.lists(
    st.tuples(st.integers(0, 2**16), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)),
    min_size=1,
    max_size=3,
)


@each_source
@settings(max_examples=EXAMPLES // 2)
@given(data=st.data())
def test_random_damage_gives_the_same_result(source: Source, data: st.DataObject) -> None:
    body = bytearray(message_codec(source.cls, source.version).encode(data.draw(messages(source.cls, source.version))))
    for index, byte in data.draw(damage):
        if body:
            body[index % len(body)] = byte
    decode_with_both(source, bytes(body))


MEMORY_MULTIPLE = 64
"""Bytes of memory for each byte of a frame. The smallest element of any array has 2 bytes on the wire and 64 as a
tuple, with two pointers to it while the array is built; an empty tagged field has 2, and 100 with its number. A refusal
may take twice as much, because the interpreted codec reads the same bytes again to find the error."""
MEMORY_CONSTANT = 96 * 1024
"""Bytes that a refusal takes for any frame: the construct tree, the exception and its traceback."""


def peak(decode: Decode, body: bytes) -> int:
    """Return the peak of allocated bytes while a body is decoded."""
    tracemalloc.start()
    try:
        decode(body, 0)
    except DecodeError:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return most


def is_peak_below(limit: int, decode: Decode, body: bytes) -> bool:
    """Return whether the peak is below a limit once: other threads of a test run allocate, too."""
    return any(peak(decode, body) < limit for _ in range(3))


@each_source
def test_hostile_sizes_allocate_nothing(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """2^30 announced elements or 2^31-1 announced bytes in a tiny body allocate no more than the body."""
    codec = message_codec(source.cls, source.version)
    body = codec.encode(PLAIN.of(source.cls, source.version))
    for field in size_fields(source, body, monkeypatch):
        for number in hostile_numbers(field)[:4]:
            hostile = body[: field.position] + number + body[field.position + field.size :]
            decode_with_both(source, hostile)
            assert is_peak_below(MEMORY_CONSTANT, codec.decode, hostile)


TOPICS_WITHOUT_NAME = b"\x81\x80\x01" + b"\1\0" * 0x4000 + b"\1\0\0\0"
TAGS_WITHOUT_CONTENT = b"\2g" + bytes(8) + b"\1\0\1\1" + b"\x80\x80\x01" + b"\xff\x7f\0" * 0x4000


@pytest.mark.parametrize(
    ("cls", "version", "body"), [(MetadataRequest, 9, TOPICS_WITHOUT_NAME), (JoinGroupRequest, 6, TAGS_WITHOUT_CONTENT)]
)
def test_memory_is_a_small_multiple_of_the_frame(cls: type[Message], version: int, body: bytes) -> None:
    decode = message_codec(cls, version).decode
    assert decode(body, 0)[1] == len(body)
    assert is_peak_below(MEMORY_MULTIPLE * len(body), decode, body)
    assert is_peak_below(2 * MEMORY_MULTIPLE * len(body), decode, body[:-1])


@each_source
def test_memory_of_arrays_is_a_small_multiple_of_the_frame(source: Source) -> None:
    """Each array of each message, with sixty of its smallest elements."""
    codec, one = message_codec(source.cls, source.version), Edges(size=1).of(source.cls, source.version)
    for path in array_paths(source.cls, source.version):
        body = codec.encode(with_array_size(one, path, 60))
        codec.decode(body, 0)
        assert is_peak_below(MEMORY_MULTIPLE * len(body) + 2048, codec.decode, body), path


class Empty(Struct):
    """Has no bytes in version 0. Kafka has no such element, but a declaration may have one."""

    later: Annotated[Int8, since(1)] = 0


class EmptyElements(Message, versions=(0, 1)):
    """An array whose count is not limited by the size of its elements."""

    elements: Array[Empty]


def test_the_count_of_elements_without_bytes_is_limited_by_the_bytes_left() -> None:
    source = Source(EmptyElements, 0, packs=False)
    assert decode_with_both(source, bytes.fromhex("7fffffff")) is None
    assert decode_with_both(source, bytes.fromhex("00000003") + bytes(2)) is None
    assert decode_with_both(source, bytes.fromhex("00000002") + bytes(2)) == (
        EmptyElements(elements=(Empty(), Empty())),
        4,
    )


def test_a_large_frame_is_refused_without_a_diagnosis() -> None:
    """construct would take many times longer to find the error than the generated codec took to refuse the frame."""
    body = b"\0\1g" + b"\0\0\0\1\0\0" + bytes(8) + b"\0\0\0\1\0\1t\x7f\xff\xff\xff" + bytes(DIAGNOSIS_SIZE_MAX)
    with pytest.raises(DecodeError, match=f"{len(body)} bytes do not have this layout") as caught:
        message_codec(OffsetCommitRequest, 3).decode(body, 0)
    assert caught.value.path == "OffsetCommitRequest"
