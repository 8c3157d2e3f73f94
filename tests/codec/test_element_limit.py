"""A decoder counts the elements of all arrays and tag sections, and ends before it builds more than its caller accepts.

Method. The generated and the interpreted decoder read bodies with the number of their elements as the limit, and with
one less. Only the generated one counts tagged fields that are declared.
"""

from __future__ import annotations

import pytest

from kproto.declaration import TaggedField
from kproto.errors import TooManyElements
from kproto.interpret import InterpretedCodec, _element_count
from kproto.message_codec import message_codec
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from tests.codec.bodies import Source, each_source
from tests.codec.distinct_values import values
from tests.codec.strategies import made

DECLARED_TAGS_MAX = 40
"""Declared tagged fields in one value, at most."""


@each_source
def test_both_decoders_accept_as_many_elements_as_the_limit(source: Source) -> None:
    for value in values(source.cls, source.version):
        body = message_codec(source.cls, source.version).encode(value)
        count = _element_count(InterpretedCodec(source.cls, source.version).decode(body)[0])
        for codec in (message_codec(source.cls, source.version), InterpretedCodec(source.cls, source.version)):
            assert codec.decode(body, 0, count + DECLARED_TAGS_MAX)[1] == len(body)


@each_source
def test_no_decoder_accepts_more_elements_than_the_limit(source: Source) -> None:
    value = values(source.cls, source.version)[4]  # three elements in each array
    body = message_codec(source.cls, source.version).encode(value)
    count = _element_count(InterpretedCodec(source.cls, source.version).decode(body)[0])
    # An array with one element, of which the generated decoder counts none, is not in this value.
    for codec in (message_codec(source.cls, source.version), InterpretedCodec(source.cls, source.version)):
        if count:
            with pytest.raises(TooManyElements):
                codec.decode(body, 0, count - 1)


def test_unknown_tagged_fields_count_as_elements() -> None:
    tags = tuple(TaggedField(number, b"") for number in range(300))
    body = made(FindCoordinatorRequest, ("", 0, ("k",), tags)).encode(4)
    decode = message_codec(FindCoordinatorRequest, 4).decode
    assert decode(body, 0, 301)[0].unknown_tagged_fields == tags
    with pytest.raises(TooManyElements):
        decode(body, 0, 300)
