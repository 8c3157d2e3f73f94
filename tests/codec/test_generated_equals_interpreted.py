"""The generated codec is the interpreted one, only quicker: same bytes, same values, same positions, for every message.

Values are made by Hypothesis from the declarations, for every API key, side and version; and edge cases by hand: empty,
null, least and greatest, strings and arrays at the sizes where either codec or the wire changes its way.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.interpret import InterpretedCodec
from kproto.message import Message
from kproto.message_codec import message_codec
from kproto.runtime import PACK_MAX, PACK_MIN
from tests.codec.bodies import Source, each_source
from tests.codec.strategies import (
    EXAMPLES,
    LAYOUTS,
    Edges,
    array_paths,
    edges,
    messages,
    with_array_size,
)

each_layout = pytest.mark.parametrize(
    ("cls", "version"), LAYOUTS, ids=[f"{cls.__name__} v{version}" for cls, version in LAYOUTS]
)


def check(cls: type[Message], version: int, value: Any, before: bytes = b"", behind: bytes = b"") -> None:
    """Both codecs write the same, and read it back from between other bytes."""
    plain, quick = InterpretedCodec(cls, version), message_codec(cls, version)
    data = plain.encode(value)
    assert quick.encode(value) == data
    buffer, end = before + data + behind, len(before) + len(data)
    assert plain.decode(buffer, len(before)) == (value, end)
    decoded, position = quick.decode(buffer, len(before))
    assert (decoded, position) == (value, end)
    assert same_types(decoded, value)


def same_types(one: Any, other: Any) -> bool:
    """Whether equal values have equal types too: True is 1, and a tuple of another class might pass for a value."""
    if type(one) is not type(other):
        return False
    return not isinstance(one, tuple) or all(map(same_types, one, other))


@each_layout
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_any_value(cls: type[Message], version: int, data: st.DataObject) -> None:
    value = data.draw(messages(cls, version))
    check(cls, version, value, data.draw(st.binary(max_size=3)), data.draw(st.binary(max_size=20)))


@each_layout
def test_edge_cases(cls: type[Message], version: int) -> None:
    for edge in edges():
        check(cls, version, edge.of(cls, version))


@each_source
def test_arrays_around_the_sizes_of_bulk_work(source: Source) -> None:
    """Each array of a message in turn, the others of one element."""
    cls, version, packs = source
    one = Edges(size=1, text=1).of(cls, version)
    for path in array_paths(cls, version):
        for size in (PACK_MIN - 1, PACK_MIN, 126, 127, *((PACK_MAX, PACK_MAX + 1) if packs else ())):
            check(cls, version, with_array_size(one, path, size))
