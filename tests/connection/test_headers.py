"""Headers: the hand-written reader and writer agree with the declared headers, on recorded and generated frames.

Rules BA-3 (request headers), BA-4 (null client id), BA-5 (response headers), BA-21 (unknown versions of ApiVersions).
"""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import headers, registry
from kproto.declaration import NEWEST, NONE, TaggedField
from kproto.errors import DecodeError, EncodeError, TooManyElements
from kproto.headers import (
    ReceivedHeader,
    RequestHeader,
    ResponseHeader,
    joined_response_frame,
    read_request_header,
    read_response,
    request_frame,
    response_frame,
)
from kproto.message_codec import message_codec
from kproto.messages import APIS
from kproto.messages.k07_controlled_shutdown import ControlledShutdownRequest
from kproto.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kproto.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.fixture_files import GoldenPair, conversations, definitions, golden, golden_apis

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
CLIENT_ID = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TAGS = st.dictionaries(st.integers(0, 2**32 - 1), st.binary(max_size=40), max_size=3)

PAIRS = [pair for api in golden_apis() for pair in golden(api)]


def as_declared(frame: bytes) -> ReceivedHeader:
    """Return a header that only the codec of its declaration reads."""
    api_key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
    codec = message_codec(RequestHeader, registry.header_versions(api_key, version)[0])
    header, position = codec.decode(frame, 0)
    assert header.request_api_key == api_key
    assert header.request_api_version == version
    return ReceivedHeader(api_key, version, header.correlation_id, header.client_id, position)


def test_the_fast_reader_agrees_with_the_declaration_on_recorded_requests() -> None:
    frames = [pair.request for pair in PAIRS]
    frames += [f.frame for recorded in conversations().values() for f in recorded if f.is_request]
    assert len(frames) > 2000
    unknown = 0
    for frame in frames:
        if int.from_bytes(frame[:2], "big", signed=True) in APIS:
            assert read_request_header(frame) == as_declared(frame)
        else:
            unknown += 1
            with pytest.raises(DecodeError, match="no API has key"):
                read_request_header(frame)
    assert unknown > 0


def test_recorded_conversations_have_the_same_key_version_and_correlation_id() -> None:
    for recorded in conversations().values():
        for frame in recorded:
            if frame.is_request:
                header = read_request_header(frame.frame)
                found = (header.api_key, header.api_version, header.correlation_id)
                assert found == (frame.api_key, frame.api_version, frame.correlation_id)


@given(
    api_key=st.sampled_from(sorted(APIS)),
    version=INT16,
    correlation_id=INT32,
    client_id=CLIENT_ID,
    tags=TAGS,
    body=st.binary(max_size=20),
)
def test_the_fast_reader_agrees_with_the_declaration_on_any_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None, tags: dict[int, bytes], body: bytes
) -> None:
    header_version = registry.header_versions(api_key, version)[0]
    unknown = tuple(TaggedField(number, tags[number]) for number in sorted(tags)) if header_version == 2 else ()
    header = RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    data = header.replace(unknown_tagged_fields=unknown).encode(header_version)
    expected = "" if header_version == 0 else client_id
    found = read_request_header(data + body)
    assert found == (api_key, version, correlation_id, expected, len(data))
    assert found == as_declared(data + body)


@given(head=st.sampled_from(sorted(APIS)), frame=st.binary(max_size=40))
def test_the_fast_reader_refuses_what_the_declaration_refuses(head: int, frame: bytes) -> None:
    frame = head.to_bytes(2, "big") + frame
    try:
        expected = as_declared(frame)
    except DecodeError:
        with pytest.raises((DecodeError, TooManyElements)):
            read_request_header(frame)
    else:
        assert read_request_header(frame) == expected


def long_header() -> bytes:
    header = RequestHeader(request_api_key=8, request_api_version=8, correlation_id=7, client_id="grüße")
    return header.replace(unknown_tagged_fields=(TaggedField(1, b"x" * 200), TaggedField(300, b""))).encode(2)


def test_a_header_cut_at_any_byte_is_refused() -> None:
    whole = long_header()
    assert read_request_header(whole).body_position == len(whole)
    for size in range(len(whole)):
        with pytest.raises(DecodeError):
            read_request_header(whole[:size])


def test_a_client_id_cut_in_an_api_without_tags_is_refused() -> None:
    frame = request_frame(ApiVersionsRequest(), 0, correlation_id=1, client_id="client")[4:]
    for size in range(len(frame)):
        with pytest.raises(DecodeError):
            read_request_header(frame[:size])


def test_an_empty_frame_is_refused() -> None:
    with pytest.raises(DecodeError, match="RequestHeader at byte 0: 0 bytes, the least is 8"):
        read_request_header(b"")


@pytest.mark.parametrize("api_key", [-1, -32768, 59, 32767])
def test_an_unknown_api_key_is_refused(api_key: int) -> None:
    """BA-6."""
    with pytest.raises(DecodeError, match=rf"RequestHeader\.request_api_key at byte 0: no API has key {api_key}"):
        read_request_header(api_key.to_bytes(2, "big", signed=True) + bytes(20))


def test_malformed_text_of_a_client_id_is_replaced() -> None:
    """As in Java; the position of the body is that of the bytes as sent."""
    frame = bytes.fromhex("0008 0003 00000007 0002 fffe")
    assert read_request_header(frame) == as_declared(frame) == (8, 3, 7, "\ufffd\ufffd", 12)


def test_too_many_tagged_fields_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first request of an API, too."""
    monkeypatch.setattr(headers, "_flexible_from", {})
    begin = "0008 0008 00000007 0001 61"
    for _ in range(2):
        with pytest.raises(TooManyElements):
            read_request_header(bytes.fromhex(f"{begin} e907") + bytes(2 * 1001))
        read_request_header(bytes.fromhex(f"{begin} 00"))


OF_EACH_LAYOUT = {
    "no tags": "0008 0003 00000007 0001 61 0000",
    "null": "0008 0003 00000007 ffff",
    "empty": "0008 0003 00000007 0000",
    "flexible": "0008 0008 00000007 0001 61 00",
    "tags": "0008 0008 00000007 0001 61 02 05 02 7878 06 00",
    "SaslHandshake has no flexible version": "0011 0001 00000007 0001 61 0000",
}


@pytest.mark.parametrize("layout", OF_EACH_LAYOUT)
def test_only_the_first_header_of_an_api_is_read_by_its_declaration(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headers, "_flexible_from", {})
    frame = bytes.fromhex(OF_EACH_LAYOUT[layout])
    assert read_request_header(frame) == as_declared(frame)
    monkeypatch.delattr(headers, "_read_as_declared")
    assert read_request_header(frame) == as_declared(frame)


@pytest.mark.parametrize("size", ["ffff", "fffe", "8000"])
def test_any_negative_length_is_a_null_client_id(size: str) -> None:
    """BA-4."""
    frame = bytes.fromhex(f"0008 0003 00000007 {size}")
    assert read_request_header(frame) == (8, 3, 7, None, 10)
    assert as_declared(frame) == (8, 3, 7, None, 10)


def test_only_controlled_shutdown_v0_has_a_header_without_client_id() -> None:
    """BA-3."""
    for body in ("00000001", "", "00000001"):
        assert read_request_header(bytes.fromhex(f"0007 0000 00000007 {body}")) == (7, 0, 7, "", 8)
    assert read_request_header(bytes.fromhex("0007 0001 00000007 0001 63 00000001")) == (7, 1, 7, "c", 11)
    frame = request_frame(ControlledShutdownRequest(broker_id=1), 0, correlation_id=7, client_id="dropped")
    assert frame == bytes.fromhex("0000000c 0007 0000 00000007 00000001")


def test_an_undeclared_version_has_the_header_of_the_newest_version() -> None:
    """BA-21: a broker can respond to an ApiVersions request of a future version."""
    assert read_request_header(bytes.fromhex("0012 0063 00000007 0001 63 00 ff")) == (18, 99, 7, "c", 12)


@given(correlation_id=INT32, version=st.sampled_from([0, 1]), body=st.binary(max_size=100))
def test_a_response_frame_consists_of_size_header_and_body(correlation_id: int, version: int, body: bytes) -> None:
    frame = response_frame(correlation_id, version, body)
    assert frame[4:] == ResponseHeader(correlation_id=correlation_id).encode(version) + body
    assert frame == joined_response_frame(correlation_id, version, [body[:3], body[3:]])
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4


def test_a_correlation_id_beyond_int32_is_refused() -> None:
    with pytest.raises(EncodeError, match=r"^ResponseHeader\.correlation_id: "):
        response_frame(2**31, 0, b"")


def is_valid(pair: GoldenPair) -> bool:
    """Whether a codec can encode the request: its values are recorded, and its version is declared."""
    return pair.request_values is not None and pair.api_version in registry.versions(pair.api_key)


def test_recorded_requests_are_encoded_again_from_their_values() -> None:
    count = 0
    for pair in PAIRS:
        if not is_valid(pair):
            continue
        header = read_request_header(pair.request)
        request, end = registry.codec(pair.api_key, pair.api_version).decode_request(pair.request, header.body_position)
        frame = request_frame(
            request, header.api_version, correlation_id=header.correlation_id, client_id=header.client_id
        )
        assert frame[:4] == end.to_bytes(4, "big")
        assert frame[4:] == pair.request[:end], pair.note
        count += 1
    assert count > 1000


def test_recorded_responses_have_the_correlation_id_of_their_request() -> None:
    count = 0
    for pair in PAIRS:
        if pair.response is None or pair.api_version not in registry.versions(pair.api_key):
            continue
        correlation_id, response = read_response(pair.response, pair.api_key, pair.api_version)
        assert correlation_id == read_request_header(pair.request).correlation_id
        assert type(response) is registry.response_class(pair.api_key)
        count += 1
    assert count > 1000


def test_a_response_is_read_by_its_class_the_request_class_or_the_api_key() -> None:
    frame = response_frame(3, 0, OffsetCommitResponse(topics=()).encode(3))[4:]
    by_response: tuple[int, OffsetCommitResponse] = read_response(frame, OffsetCommitResponse, 3)
    assert by_response == (3, OffsetCommitResponse(topics=()))
    assert read_response(frame, OffsetCommitRequest, 3) == by_response
    assert read_response(frame, 8, 3) == by_response


def test_unsupported_version_of_api_versions_is_read_as_v0() -> None:
    """BA-21: the response to a version that the broker does not know."""
    frame = bytes.fromhex("00000007 0023 00000001 0012 0000 0004")
    correlation_id, response = read_response(frame, ApiVersionsResponse, 4)
    assert correlation_id == 7
    assert response.error_code == 35
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [(18, 0, 4)]


def test_bytes_after_a_response_are_refused() -> None:
    frame = response_frame(3, 0, OffsetCommitResponse(topics=()).encode(3))[4:]
    with pytest.raises(DecodeError, match="1 bytes after the end"):
        read_response(frame + b"\0", 8, 3)


@pytest.mark.parametrize("declared", [RequestHeader, ResponseHeader])
def test_the_declared_headers_are_kafkas(declared: type[Any]) -> None:
    """The fields, types and versions are those of Kafka 3.9.2; 4.x only dropped header v0."""
    from kproto.declaration import fields_of

    definition = definitions("3.9.2")[declared.__name__]
    assert tuple(declared._versions) == dataclasses.astuple(definition.valid_versions)
    assert tuple(declared._flexible) == dataclasses.astuple(definition.flexible_versions)
    for field, kafkas in zip(fields_of(declared), definition.fields, strict=True):
        assert field.name.replace("_", "") == kafkas.name.lower()
        assert field.type.kind == kafkas.type
        assert tuple(field.versions) == (kafkas.versions.low, NEWEST)
        assert (field.nullable_versions != NONE) == (1 in kafkas.nullable_versions)
        assert field.never_compact == (kafkas.flexible_versions is not None)
        assert field.ignorable == kafkas.ignorable
