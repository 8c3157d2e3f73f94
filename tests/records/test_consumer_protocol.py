"""Subscriptions and assignments: written by hand, recorded from real members, and from newer members."""

import pytest

from kproto import registry
from kproto.errors import DecodeError, UnsupportedVersion
from kproto.headers import read_request_header
from kproto.message_codec import message_codec
from kproto.messages.k11_join_group import JoinGroupRequest
from kproto.messages.k14_sync_group import SyncGroupRequest
from kproto.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_member_data,
    read_assignment,
    read_subscription,
)
from tests.fixture_files import conversations

OWNED = (TopicPartition(topic="t", partitions=(0, 1)),)
SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=("t", "u"), user_data=b"\1", owned_partitions=OWNED, generation_id=7, rack_id="r"
)
ASSIGNMENT = ConsumerProtocolAssignment(assigned_partitions=OWNED, user_data=None)

BEGIN = "00000002 0001 74 0001 75 00000001 01"
OWNED_HEX = "00000001 0001 74 00000002 00000000 00000001"
SUBSCRIPTIONS = {
    0: f"0000 {BEGIN}",
    1: f"0001 {BEGIN} {OWNED_HEX}",
    2: f"0002 {BEGIN} {OWNED_HEX} 00000007",
    3: f"0003 {BEGIN} {OWNED_HEX} 00000007 0001 72",
}
FIRST_VERSION = {"owned_partitions": 1, "generation_id": 2, "rack_id": 3}
DEFAULTS = {"owned_partitions": (), "generation_id": -1, "rack_id": None}


def of_version(version: int) -> ConsumerProtocolSubscription:
    """Return SUBSCRIPTION with the defaults of the fields that the version lacks."""
    missing = {name: DEFAULTS[name] for name, first in FIRST_VERSION.items() if version < first}
    return SUBSCRIPTION.replace(**missing)


@pytest.mark.parametrize(("version", "encoded"), SUBSCRIPTIONS.items())
def test_subscriptions_written_by_hand(version: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert encode_member_data(SUBSCRIPTION, version) == data
    assert read_subscription(data) == (version, of_version(version))


@pytest.mark.parametrize("version", range(4))
def test_assignments_written_by_hand(version: int) -> None:
    data = bytes.fromhex(f"000{version} {OWNED_HEX} ffffffff")
    assert encode_member_data(ASSIGNMENT, version) == data
    assert read_assignment(data) == (version, ASSIGNMENT)


def test_a_newer_version_is_read_as_the_newest_and_bytes_after_it_are_ignored() -> None:
    data = bytes.fromhex("0009" + SUBSCRIPTIONS[3][4:]) + b"more"
    assert read_subscription(data) == (9, SUBSCRIPTION)
    assert read_assignment(bytes.fromhex(f"0004 {OWNED_HEX} ffffffff 05")) == (4, ASSIGNMENT)


@pytest.mark.parametrize("data", ["", "00", "ffff", "8000", "ffff00000000ffffffff"])
def test_a_missing_or_negative_version_is_refused(data: str) -> None:
    for read in (read_subscription, read_assignment):
        with pytest.raises(DecodeError):
            read(bytes.fromhex(data))


@pytest.mark.parametrize("version", range(4))
def test_truncated_data_is_refused(version: int) -> None:
    data = bytes.fromhex(SUBSCRIPTIONS[version])
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            read_subscription(data[:size])


def test_an_undeclared_version_is_not_encoded() -> None:
    with pytest.raises(UnsupportedVersion):
        encode_member_data(SUBSCRIPTION, 4)


def test_data_of_real_members_is_decoded_and_encoded_to_the_same_bytes() -> None:
    """Members are Java, librdkafka and Python clients of the recorded conversations."""
    count = 0
    for recorded in conversations().values():
        for frame in recorded:
            if not frame.is_request or frame.api_key not in (11, 14):
                continue
            decode = registry.codec(frame.api_key, frame.api_version).decode_request
            request = decode(frame.frame, read_request_header(frame.frame).body_position)[0]
            for data in member_data(request):
                read = read_subscription if isinstance(request, JoinGroupRequest) else read_assignment
                version, value = read(data)
                assert encode_member_data(value, version) == data
                count += 1
    assert count > 10


def member_data(request: object) -> list[bytes]:
    if isinstance(request, JoinGroupRequest):
        return [protocol.metadata for protocol in request.protocols]
    assert isinstance(request, SyncGroupRequest)
    return [assignment.assignment for assignment in request.assignments]


def test_the_codec_encodes_without_the_version() -> None:
    assert message_codec(ConsumerProtocolAssignment, 0).encode(ASSIGNMENT).hex() == (
        OWNED_HEX.replace(" ", "") + "ffffffff"
    )
