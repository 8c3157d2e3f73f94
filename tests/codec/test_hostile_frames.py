"""Hostile bytes: one documented error, the same verdict of both codecs, and memory within a multiple of the frame.

Each way to lie is tried at each place of valid bodies of every layout, and random damage by Hypothesis. The interpreted
codec is asked about every one of them: `verdict` fails if the two differ in what they take or refuse.
"""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.declaration import Array, Field, Int8, Struct, TaggedField, fields_of, since
from kproto.errors import DecodeError
from kproto.message import Message
from kproto.message_codec import message_codec
from kproto.messages.k03_metadata import MetadataRequest
from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.messages.k11_join_group import JoinGroupRequest
from kproto.runtime import BULK_READ_MIN, DIAGNOSIS_SIZE_MAX
from tests.codec.bodies import SOURCES, Place, Source, each_source, places, verdict
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
        assert verdict(source, body[:size]) is None


@each_source
def test_arrays_that_are_read_in_bulk_may_end_anywhere(source: Source) -> None:
    """It must not read past the end, nor take fewer elements than are announced."""
    codec, one = message_codec(source.cls, source.version), PLAIN.of(source.cls, source.version)
    for path in array_paths(source.cls, source.version):
        body = codec.encode(with_array_size(one, path, BULK_READ_MIN))
        for size in range(1, len(body), max(1, len(body) // 16)):
            assert verdict(source, body[:size]) is None


INT16S = ("7fff", "8000", "ffff", "fffe")
INT32S = ("7fffffff", "80000000", "ffffffff", "40000000", "00007fff")
VARINTS = (
    "ffffffff07",  # 2^31-1
    "8080808008",  # 2^31
    "ffffffff0f",  # 2^32-1
    "8080808004",  # 2^30
    "818002",  # 32769: a string of 32768 octets
    "8000",  # 0 in two octets
    "00",  # null
)
TOO_LONG = tuple(map(bytes.fromhex, ("ffffffff1f", "ffffffff7f", "808080808001", "80808080808080808080")))
"""Varints of 33 and of 35 bits, of six octets, and without end."""


def lies(place: Place) -> tuple[bytes, ...]:
    if place.compact:
        return (*map(bytes.fromhex, VARINTS), *TOO_LONG)
    return tuple(map(bytes.fromhex, INT16S if place.size == 2 else INT32S))


@each_source
def test_lies_about_lengths_counts_and_tags(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    body = message_codec(source.cls, source.version).encode(TAGGED.of(source.cls, source.version))
    for place in places(source, body, monkeypatch):
        for lie in lies(place):
            found = verdict(source, body[: place.position] + lie + body[place.position + place.size :])
            assert found is None or lie not in TOO_LONG


@each_source
def test_text_that_is_not_utf_8_is_refused(source: Source) -> None:
    body = message_codec(source.cls, source.version).encode(Edges(size=1, text=2).of(source.cls, source.version))
    for place in range(len(body) - 1):
        if body[place : place + 2] == b"ss":
            assert verdict(source, body[:place] + b"\xc3\x28" + body[place + 2 :]) is None
            assert verdict(source, body[:place] + b"\xed\xa0" + body[place + 2 :]) is None


LONGEST = b"\x80\x80\x02" + b"s" * TEXT_SIZE_MAX
TOO_LONG_BY_ONE = b"\x81\x80\x02" + b"s" * (TEXT_SIZE_MAX + 1)


@pytest.mark.parametrize(
    "source", [source for source in SOURCES if source.cls._flexible.covers(source.version)], ids=str
)
def test_compact_text_is_no_longer_than_plain_text(source: Source) -> None:
    """Its length could announce more, and Kafka refuses that."""
    codec = message_codec(source.cls, source.version)
    body = codec.encode(Edges(size=1, text=TEXT_SIZE_MAX).of(source.cls, source.version))
    pieces = body.split(LONGEST)
    for place in range(1, len(pieces)):
        before, behind = LONGEST.join(pieces[:place]), LONGEST.join(pieces[place:])
        assert codec.decode(before + LONGEST + behind, 0)[1] == len(body)
        with pytest.raises(DecodeError):
            codec.decode(before + TOO_LONG_BY_ONE + behind, 0)


def known_tags(source: Source) -> dict[int, Field]:
    found = [
        field for field in fields_of(source.cls) if field.tag is not None and field.versions.covers(source.version)
    ]
    return {field.tag.number: field for field in found if field.tag is not None}


WITH_TAGS = tuple(source for source in SOURCES if known_tags(source))


@pytest.mark.parametrize("source", WITH_TAGS, ids=str)
def test_a_known_tag_must_fill_its_size(source: Source) -> None:
    """An unknown tag may hold anything; the same bytes under a known number are held to its type."""
    for number, field in known_tags(source).items():
        told = (
            Edges()
            .of(source.cls, source.version)
            .replace(**{field.name: field.default}, unknown_tagged_fields=(TaggedField(number, b"\1" * 37),))
        )
        assert verdict(source, message_codec(source.cls, source.version).encode(told)) is None


damage = st.lists(
    st.tuples(st.integers(0, 2**16), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)),
    min_size=1,
    max_size=3,
)


@each_source
@settings(max_examples=EXAMPLES // 2)
@given(data=st.data())
def test_random_damage(source: Source, data: st.DataObject) -> None:
    body = bytearray(message_codec(source.cls, source.version).encode(data.draw(messages(source.cls, source.version))))
    for place, octet in data.draw(damage):
        if body:
            body[place % len(body)] = octet
    verdict(source, bytes(body))


MEMORY_MULTIPLE = 64
"""Octets of memory for each of a frame. The smallest element of any array takes 2 octets on the wire and 64 as a tuple,
with two pointers to it while the array is made; a tagged field of no content 2, and 100 with its number. A refusal may
take twice as much: the interpreted codec reads what the generated one read, to say where it is wrong."""
MEMORY_CONSTANT = 96 * 1024
"""Octets that a refusal takes whatever the frame: the construct tree, the exception and its traceback."""


def peak(decode: Decode, body: bytes) -> int:
    """Return the octets that are allocated at once while a body is read."""
    tracemalloc.start()
    try:
        decode(body, 0)
    except DecodeError:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return most


@each_source
def test_lies_about_sizes_allocate_nothing(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """2^30 elements or 2^31-1 octets in a tiny body cost no more than the body does."""
    codec = message_codec(source.cls, source.version)
    body = codec.encode(PLAIN.of(source.cls, source.version))
    for place in places(source, body, monkeypatch):
        for lie in lies(place)[:4]:
            hostile = body[: place.position] + lie + body[place.position + place.size :]
            verdict(source, hostile)
            assert peak(codec.decode, hostile) < MEMORY_CONSTANT


TOPICS_OF_NO_NAME = b"\x81\x80\x01" + b"\1\0" * 0x4000 + b"\1\0\0\0"
TAGS_OF_NO_CONTENT = b"\2g" + bytes(8) + b"\1\0\1\1" + b"\x80\x80\x01" + b"\xff\x7f\0" * 0x4000


@pytest.mark.parametrize(
    ("cls", "version", "body"),
    [(MetadataRequest, 9, TOPICS_OF_NO_NAME), (JoinGroupRequest, 6, TAGS_OF_NO_CONTENT)],
)
def test_memory_is_a_small_multiple_of_the_frame(cls: type[Message], version: int, body: bytes) -> None:
    decode = message_codec(cls, version).decode
    assert decode(body, 0)[1] == len(body)
    assert peak(decode, body) < MEMORY_MULTIPLE * len(body)
    assert peak(decode, body[:-1]) < 2 * MEMORY_MULTIPLE * len(body)


@each_source
def test_memory_of_arrays_is_a_small_multiple_of_the_frame(source: Source) -> None:
    """Each array of each message with two hundred of the smallest elements that it can have."""
    codec, one = message_codec(source.cls, source.version), Edges(size=1).of(source.cls, source.version)
    for path in array_paths(source.cls, source.version):
        body = codec.encode(with_array_size(one, path, 200))
        codec.decode(body, 0)
        assert peak(codec.decode, body) < MEMORY_MULTIPLE * len(body) + 4096, path


class Nothing(Struct):
    """Takes no octet in version 0. Kafka has no such element, but a declaration may."""

    later: Annotated[Int8, since(1)] = 0


class ManyOfNothing(Message, versions=(0, 1)):
    """An array whose count nothing on the wire bounds."""

    elements: Array[Nothing]


def test_a_count_of_elements_without_octets_is_held_against_the_octets_left() -> None:
    source = Source(ManyOfNothing, 0, packs=False)
    assert verdict(source, bytes.fromhex("7fffffff")) is None
    assert verdict(source, bytes.fromhex("00000003") + bytes(2)) is None
    assert verdict(source, bytes.fromhex("00000002") + bytes(2)) == (ManyOfNothing(elements=(Nothing(), Nothing())), 4)


def test_what_is_wrong_with_a_large_frame_is_not_looked_for() -> None:
    """Telling it would take construct many times longer than the frame took to refuse."""
    body = b"\0\1g" + b"\0\0\0\1\0\0" + bytes(8) + b"\0\0\0\1\0\1t\x7f\xff\xff\xff" + bytes(DIAGNOSIS_SIZE_MAX)
    with pytest.raises(DecodeError, match=f"{len(body)} bytes do not have this layout") as caught:
        message_codec(OffsetCommitRequest, 3).decode(body, 0)
    assert caught.value.path == "OffsetCommitRequest"
