"""The generated codec equals the interpreted one: same bytes, same values, same positions, for every message.

Hypothesis draws values from the declarations, for every message and version. Edge cases are added: empty, null, least
and greatest values, strings and arrays of the sizes around which the codecs or the protocol change.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.interpret import InterpretedCodec
from kproto.message import Message
from kproto.message_codec import message_codec
from kproto.runtime import PACK_MAX, PACK_MIN
from tests.codec.bodies import Source, each_source
from tests.codec.strategies import EXAMPLES, Edges, array_paths, edges, messages, with_array_size


def check(cls: type[Message], version: int, value: Any, before: bytes = b"", after: bytes = b"") -> None:
    """Check that both codecs encode the same bytes, and decode them from between other bytes."""
    reference, generated = InterpretedCodec(cls, version), message_codec(cls, version)
    data = reference.encode(value)
    assert generated.encode(value) == data
    assert generated.encode(value, lambda pieces: b"".join([b"header", *pieces])) == b"header" + data
    if generated.encode_slices is not None:
        assert b"".join(generated.encode_slices(value)) == data
    buffer, end = before + data + after, len(before) + len(data)
    assert reference.decode(buffer, len(before)) == (value, end)
    decoded, position = generated.decode(buffer, len(before))
    assert (decoded, position) == (value, end)
    assert same_types(decoded, value)


def same_types(one: Any, other: Any) -> bool:
    """Whether equal values also have equal types: True equals 1, and tuples of two classes can be equal."""
    if type(one) is not type(other):
        return False
    return not isinstance(one, tuple) or all(map(same_types, one, other))


@each_source
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_any_value_is_encoded_and_decoded(source: Source, data: st.DataObject) -> None:
    cls, version, _ = source
    value = data.draw(messages(cls, version))
    check(cls, version, value, data.draw(st.binary(max_size=3)), data.draw(st.binary(max_size=20)))


@each_source
def test_edge_cases_are_encoded_and_decoded(source: Source) -> None:
    cls, version, _ = source
    for edge in edges():
        check(cls, version, edge.of(cls, version))


@each_source
def test_arrays_around_the_sizes_of_bulk_reads_and_writes(source: Source) -> None:
    """Each array of a message in turn; the others have one element."""
    cls, version, packs = source
    one = Edges(size=1, text=1).of(cls, version)
    for path in array_paths(cls, version):
        for size in (PACK_MIN - 1, PACK_MIN, 126, 127, *((PACK_MAX, PACK_MAX + 1) if packs else ())):
            check(cls, version, with_array_size(one, path, size))
