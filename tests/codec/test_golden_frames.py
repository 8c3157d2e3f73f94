"""Recorded frames of real brokers and clients are decoded, and encoded to the same bytes, headers included.

Both codecs are tested. The recordings include requests that no real client sends: bodies that the broker refused by
closing the connection, and bodies with trailing bytes, which the broker accepted. Their ``note`` distinguishes them.
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
"""The body of these requests has the layout of another version."""
TRAILING = {"three bytes too many": b"\1\2\3"}
DOWNGRADED = re.compile(r"fallback .*response has the v0 layout")


def is_invalid(pair: GoldenPair) -> bool:
    """Whether the request does not have the layout of its version."""
    return pair.note in REFUSED or pair.note == NO_SUCH_API or UNSUPPORTED.match(pair.note) is not None


def pairs(api: str) -> Iterable[GoldenPair]:
    """Return the pairs with a valid request of a declared version."""
    return (
        pair for pair in golden(api) if not is_invalid(pair) and pair.api_version in registry.versions(pair.api_key)
    )


def request_bytes(frame: bytes, codec_of: CodecOf) -> tuple[bytes, bytes]:
    """Decode a request frame; return the encoded request and the bytes after it."""
    header = read_request_header(frame)
    codec = codec_of(header.api_key, header.api_version)
    value, end = codec.decode_request(frame, header.body_position)
    body = codec.encode_request(value)
    again = request_frame(value, header.api_version, correlation_id=header.correlation_id, client_id=header.client_id)
    assert again.endswith(body)
    return again[4:], frame[end:]


def response_bytes(frame: bytes, api_key: int, version: int, codec_of: CodecOf) -> bytes:
    """Decode a response frame; return the encoded response."""
    header_version = registry.header_versions(api_key, version)[1]
    codec = codec_of(api_key, version)
    value, end = codec.decode_response(frame, 4 + header_version)
    assert end == len(frame)
    assert read_response(frame, api_key, version) == (int.from_bytes(frame[:4], "big"), value)
    return response_frame(int.from_bytes(frame[:4], "big"), header_version, codec.encode_response(value))[4:]


@each_api
@each_codec
def test_decoded_requests_encode_to_the_same_bytes(api: str, codec_of: CodecOf) -> None:
    for pair in pairs(api):
        again, rest = request_bytes(pair.request, codec_of)
        assert again + rest == pair.request, pair.note
        assert rest == TRAILING.get(pair.note, b""), pair.note


@each_api
@each_codec
def test_decoded_responses_encode_to_the_same_bytes(api: str, codec_of: CodecOf) -> None:
    for pair in pairs(api):
        if pair.response is not None and not DOWNGRADED.search(pair.note):
            assert response_bytes(pair.response, pair.api_key, pair.api_version, codec_of) == pair.response, pair.note


@pytest.mark.parametrize("name", conversations())
@each_codec
def test_conversations_of_real_clients_encode_to_the_same_bytes(name: str, codec_of: CodecOf) -> None:
    for frame in conversations()[name]:
        if frame.is_request:
            assert request_bytes(frame.frame, codec_of) == (frame.frame, b"")
        else:
            assert response_bytes(frame.frame, frame.api_key, frame.api_version, codec_of) == frame.frame


@each_api
@each_codec
def test_requests_that_real_brokers_refused_raise_decode_error(api: str, codec_of: CodecOf) -> None:
    for pair in golden(api):
        if pair.note in REFUSED:
            assert pair.response is None
            position = read_request_header(pair.request).body_position
            with pytest.raises(DecodeError):
                codec_of(pair.api_key, pair.api_version).decode_request(pair.request, position)


@each_api
def test_trailing_bytes_are_refused_by_message_decode_only(api: str) -> None:
    """Real brokers responded to these requests as if there were no trailing bytes."""
    for pair in golden(api):
        if pair.note in TRAILING:
            assert pair.response is not None
            body = pair.request[read_request_header(pair.request).body_position :]
            with pytest.raises(DecodeError, match="3 bytes after the end"):
                registry.request_class(pair.api_key).decode(body, pair.api_version)


def test_an_unknown_api_key_raises_decode_error() -> None:
    found = [pair for pair in golden("OffsetCommit") if pair.note == NO_SUCH_API]
    assert found
    for pair in found:
        with pytest.raises(DecodeError, match="no API has key 9999"):
            read_request_header(pair.request)


@each_codec
def test_responses_to_unknown_versions_have_the_layout_of_version_0(codec_of: CodecOf) -> None:
    """BA-21: to an unknown version of ApiVersions, brokers respond with UNSUPPORTED_VERSION in version 0."""
    found = [pair for pair in golden("ApiVersions") if DOWNGRADED.search(pair.note)]
    assert {pair.api_version for pair in found} >= {1, 2, 3, 4, 5, 99}
    for pair in found:
        assert pair.response is not None
        assert response_bytes(pair.response, pair.api_key, 0, codec_of) == pair.response


def test_the_only_undeclared_version_in_the_recordings_is_99() -> None:
    recorded = {(pair.api_key, pair.api_version) for api in golden_apis() for pair in golden(api)}
    assert {version for key, version in recorded if version not in registry.versions(key)} == {99}


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
    """Compare the values in the fixture: bytes and UUIDs are in hex, and defaults are left out."""
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


def test_unknown_tagged_fields_of_any_struct_are_kept() -> None:
    """Two unknown tagged fields in each struct of each recorded request, as a newer peer may send them."""
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
