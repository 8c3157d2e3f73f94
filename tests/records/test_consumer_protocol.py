"""Subscriptions and assignments: by hand, as real members sent them, and with what newer members may add."""

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
OWNED_OCTETS = "00000001 0001 74 00000002 00000000 00000001"
SUBSCRIPTIONS = {
    0: f"0000 {BEGIN}",
    1: f"0001 {BEGIN} {OWNED_OCTETS}",
    2: f"0002 {BEGIN} {OWNED_OCTETS} 00000007",
    3: f"0003 {BEGIN} {OWNED_OCTETS} 00000007 0001 72",
}
FIRST_VERSION = {"owned_partitions": 1, "generation_id": 2, "rack_id": 3}
DEFAULTS = {"owned_partitions": (), "generation_id": -1, "rack_id": None}


def of_version(version: int) -> ConsumerProtocolSubscription:
    """What a version keeps of the subscription above."""
    lost = {name: DEFAULTS[name] for name, first in FIRST_VERSION.items() if version < first}
    return SUBSCRIPTION.replace(**lost)


@pytest.mark.parametrize(("version", "octets"), SUBSCRIPTIONS.items())
def test_subscriptions_made_by_hand(version: int, octets: str) -> None:
    data = bytes.fromhex(octets)
    assert encode_member_data(SUBSCRIPTION, version) == data
    assert read_subscription(data) == (version, of_version(version))


@pytest.mark.parametrize("version", range(4))
def test_assignments_made_by_hand(version: int) -> None:
    data = bytes.fromhex(f"000{version} {OWNED_OCTETS} ffffffff")
    assert encode_member_data(ASSIGNMENT, version) == data
    assert read_assignment(data) == (version, ASSIGNMENT)


def test_a_newer_version_is_read_as_the_newest_and_what_follows_is_ignored() -> None:
    data = bytes.fromhex("0009" + SUBSCRIPTIONS[3][4:]) + b"more"
    assert read_subscription(data) == (9, SUBSCRIPTION)
    assert read_assignment(bytes.fromhex(f"0004 {OWNED_OCTETS} ffffffff 05")) == (4, ASSIGNMENT)


@pytest.mark.parametrize("data", ["", "00", "ffff", "8000", "ffff00000000ffffffff"])
def test_no_version_or_a_negative_one_is_refused(data: str) -> None:
    for read in (read_subscription, read_assignment):
        with pytest.raises(DecodeError):
            read(bytes.fromhex(data))


@pytest.mark.parametrize("version", range(4))
def test_what_is_cut_off_is_refused(version: int) -> None:
    data = bytes.fromhex(SUBSCRIPTIONS[version])
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            read_subscription(data[:size])


def test_other_versions_are_not_written() -> None:
    with pytest.raises(UnsupportedVersion):
        encode_member_data(SUBSCRIPTION, 4)


def test_what_real_members_said_is_read_and_written_again() -> None:
    """Java, librdkafka and Python clients of the recorded conversations."""
    said = 0
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
                said += 1
    assert said > 10


def member_data(request: object) -> list[bytes]:
    if isinstance(request, JoinGroupRequest):
        return [protocol.metadata for protocol in request.protocols]
    assert isinstance(request, SyncGroupRequest)
    return [assignment.assignment for assignment in request.assignments]


def test_the_codec_is_found_by_the_class() -> None:
    assert message_codec(ConsumerProtocolAssignment, 0).encode(ASSIGNMENT).hex() == (
        OWNED_OCTETS.replace(" ", "") + "ffffffff"
    )
