"""Frames that real brokers and real clients exchanged decode, and encode to the same bytes, in both codecs.

Headers included. What real clients never say was said by hand: bodies that a broker refused (it closed the
connection), and bodies with bytes behind them, which it took. Those are told by the note of the situation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kproto import registry
from kproto.declaration import Struct, TaggedField, fields_of
from kproto.errors import DecodeError
from kproto.headers import read_request_header, read_response, request_frame, response_frame
from kproto.messages import APIS
from tests.codec.kafka_names import snake
from tests.fixture_files import GoldenPair, conversations, golden, golden_apis

CODECS = {"generated": registry.codec, "interpreted": registry.interpreted}
each_codec = pytest.mark.parametrize("codec_of", CODECS.values(), ids=CODECS)
each_api = pytest.mark.parametrize("api", golden_apis())
CodecOf = Callable[[int, int], registry.ApiCodec]

REFUSED = {
    "body cut in the middle",
    "body cut one byte short",
    "empty body",
    "null group id",
    "null topics array",
    "topics array length 2^31-1",
}
NO_SUCH_API = "unknown api key 9999"
UNSUPPORTED = re.compile(r"version \d+: not supported by this broker")
"""With a body that was not made for the version."""
TRAILING = {"three bytes too many": b"\1\2\3"}
DOWNGRADED = re.compile(r"fallback .*response has the v0 layout")


def made_by_hand(pair: GoldenPair) -> bool:
    """Whether the request is none."""
    return pair.note in REFUSED or pair.note == NO_SUCH_API or UNSUPPORTED.match(pair.note) is not None


def pairs(api: str) -> Iterable[GoldenPair]:
    """The pairs whose request is of a declared version."""
    return (
        pair for pair in golden(api) if not made_by_hand(pair) and pair.api_version in registry.versions(pair.api_key)
    )


def request_bytes(frame: bytes, codec_of: CodecOf) -> tuple[bytes, bytes]:
    """The frame of the request that is read from a frame, and what is left of that."""
    header = read_request_header(frame)
    codec = codec_of(header.api_key, header.api_version)
    value, end = codec.decode_request(frame, header.body_position)
    body = codec.encode_request(value)
    again = request_frame(value, header.api_version, correlation_id=header.correlation_id, client_id=header.client_id)
    assert again.endswith(body)
    return again[4:], frame[end:]


def response_bytes(frame: bytes, api_key: int, version: int, codec_of: CodecOf) -> bytes:
    """The frame of the response that is read from a frame."""
    header_version = registry.header_versions(api_key, version)[1]
    codec = codec_of(api_key, version)
    value, end = codec.decode_response(frame, 4 + header_version)
    assert end == len(frame)
    assert read_response(frame, api_key, version) == (int.from_bytes(frame[:4], "big"), value)
    return response_frame(int.from_bytes(frame[:4], "big"), header_version, codec.encode_response(value))[4:]


@each_api
@each_codec
def test_requests_come_out_as_they_went_in(api: str, codec_of: CodecOf) -> None:
    for pair in pairs(api):
        again, rest = request_bytes(pair.request, codec_of)
        assert again + rest == pair.request, pair.note
        assert rest == TRAILING.get(pair.note, b""), pair.note


@each_api
@each_codec
def test_responses_come_out_as_they_went_in(api: str, codec_of: CodecOf) -> None:
    for pair in pairs(api):
        if pair.response is not None and not DOWNGRADED.search(pair.note):
            assert response_bytes(pair.response, pair.api_key, pair.api_version, codec_of) == pair.response, pair.note


@pytest.mark.parametrize("name", conversations())
@each_codec
def test_conversations_of_real_clients_come_out_as_they_went_in(name: str, codec_of: CodecOf) -> None:
    for said in conversations()[name]:
        if said.is_request:
            assert request_bytes(said.frame, codec_of) == (said.frame, b"")
        else:
            assert response_bytes(said.frame, said.api_key, said.api_version, codec_of) == said.frame


@each_api
@each_codec
def test_what_real_brokers_refused_is_refused(api: str, codec_of: CodecOf) -> None:
    for pair in golden(api):
        if pair.note in REFUSED:
            assert pair.response is None
            position = read_request_header(pair.request).body_position
            with pytest.raises(DecodeError):
                codec_of(pair.api_key, pair.api_version).decode_request(pair.request, position)


@each_api
def test_trailing_bytes_are_for_the_strict_decoder_to_refuse(api: str) -> None:
    """Real brokers answered these requests as if nothing were behind them."""
    for pair in golden(api):
        if pair.note in TRAILING:
            assert pair.response is not None
            body = pair.request[read_request_header(pair.request).body_position :]
            with pytest.raises(DecodeError, match="3 bytes after the end"):
                registry.request_class(pair.api_key).decode(body, pair.api_version)


def test_an_api_that_does_not_exist_is_refused() -> None:
    found = [pair for pair in golden("OffsetCommit") if pair.note == NO_SUCH_API]
    assert found
    for pair in found:
        with pytest.raises(DecodeError, match="no API has key 9999"):
            read_request_header(pair.request)


@each_codec
def test_downgrade_answers_have_the_layout_of_version_0(codec_of: CodecOf) -> None:
    """Rule BA-21: whatever version was asked, a broker that does not know it answers error 35 so."""
    found = [pair for pair in golden("ApiVersions") if DOWNGRADED.search(pair.note)]
    assert {pair.api_version for pair in found} >= {1, 2, 3, 4, 5, 99}
    for pair in found:
        assert pair.response is not None
        assert response_bytes(pair.response, pair.api_key, 0, codec_of) == pair.response


def test_the_only_undeclared_version_that_was_asked_is_99() -> None:
    asked = {(pair.api_key, pair.api_version) for api in golden_apis() for pair in golden(api)}
    assert {version for key, version in asked if version not in registry.versions(key)} == {99}


def test_every_recorded_api_is_declared() -> None:
    assert set(golden_apis()) <= set(APIS.values())


@each_api
def test_values_are_those_of_an_independent_decoder(api: str) -> None:
    for pair in pairs(api):
        codec = registry.codec(pair.api_key, pair.api_version)
        if pair.request_values is not None:
            value, _ = codec.decode_request(pair.request, read_request_header(pair.request).body_position)
            check_values(value, pair.request_values)
        if pair.response is not None and pair.response_values is not None and not DOWNGRADED.search(pair.note):
            check_values(read_response(pair.response, pair.api_key, pair.api_version)[1], pair.response_values)


def check_values(ours: Any, theirs: Any) -> None:
    """Compare what the fixture tells: bytes and UUIDs in hex, and not what was left at its default."""
    if isinstance(theirs, dict):
        for name, value in theirs.items():
            check_values(getattr(ours, snake(name)), value)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            check_values(our, their)
    elif isinstance(ours, bytes):
        assert ours.hex() == theirs.replace("-", "")
    else:
        assert ours == theirs


def test_unknown_tagged_fields_survive_wherever_they_are() -> None:
    """A frame of a newer peer, made from a recorded one: each structure of each request and response with two more."""
    for api in golden_apis():
        for pair in pairs(api):
            codec = registry.codec(pair.api_key, pair.api_version)
            if registry.header_versions(pair.api_key, pair.api_version)[0] < 2:
                continue
            value, _ = codec.decode_request(pair.request, read_request_header(pair.request).body_position)
            newer = with_unknown_tags(value)
            data = codec.encode_request(newer)
            assert codec.decode_request(data, 0) == (newer, len(data))
            assert registry.interpreted(pair.api_key, pair.api_version).decode_request(data, 0) == (newer, len(data))


def with_unknown_tags(value: Any) -> Any:
    if isinstance(value, Struct):
        inner = {field.name: with_unknown_tags(getattr(value, field.name)) for field in fields_of(type(value))}
        return value.replace(**inner, unknown_tagged_fields=(TaggedField(1000, b"newer"), TaggedField(2**31, b"")))
    return tuple(with_unknown_tags(item) for item in value) if isinstance(value, tuple) else value
