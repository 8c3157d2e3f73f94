"""A DecodeError names the field that is wrong, its position and the reason: one case for each reason."""

from __future__ import annotations

import pytest

from kproto.errors import DecodeError
from kproto.message import Message
from kproto.messages.k01_fetch import FetchRequest
from kproto.messages.k03_metadata import MetadataRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k14_sync_group import SyncGroupRequest

HEARTBEAT = "02 67 00000001 02 6d 00"
"""A Heartbeat v4 up to its tagged fields."""
SYNC = "0001 67 00000001 0001 6d 00000001 0001 6d"
"""A SyncGroup v0 up to the bytes of its assignment."""
FETCH = "ffffffff 00000000 00000000 00000000 00 00000000 ffffffff 01 01 01"
"""A Fetch v12 up to its tagged fields."""

CASES: tuple[tuple[type[Message], int, str, str], ...] = (
    (HeartbeatRequest, 0, "ffff", "group_id at byte 2: null, but the field can't be null"),
    (HeartbeatRequest, 4, "00", "group_id at byte 1: null, but the field can't be null"),
    (HeartbeatRequest, 4, "808080808001", "group_id at byte 5: varint of more than 5 bytes"),
    (HeartbeatRequest, 4, "ffffffff1f", "group_id at byte 5: varint of more than 32 bits"),
    (HeartbeatRequest, 4, "818002", "group_id at byte 3: string of 32768 bytes, the most is 32767"),
    (HeartbeatRequest, 4, "05 67", "group_id at byte 1: 4 bytes announced, 1 left"),
    (HeartbeatRequest, 4, HEARTBEAT, "tags at byte 9: 1 bytes announced, 0 left"),
    (HeartbeatRequest, 4, f"{HEARTBEAT} ffffffff1f", "tags at byte 14: varint of more than 32 bits"),
    (HeartbeatRequest, 4, f"{HEARTBEAT} 01 ffffffff1f", "tags at byte 15: varint of more than 32 bits"),
    (HeartbeatRequest, 4, f"{HEARTBEAT} 01 05 ffffffff1f", "tags at byte 16: varint of more than 32 bits"),
    (HeartbeatRequest, 4, f"{HEARTBEAT} 01 05 02 00", "tags at byte 12: 2 bytes announced, 1 left"),
    (MetadataRequest, 1, "00000005 0001 61", "topics at byte 4: 5 elements announced, 3 bytes left"),
    (MetadataRequest, 1, "00000002 0001 61 ffff", "topics[1].name at byte 9: null, but the field can't be null"),
    (MetadataRequest, 4, "00000000", "allow_auto_topic_creation at byte 4: 1 bytes announced, 0 left"),
    (MetadataRequest, 12, "02 00", "topics[0].topic_id at byte 1: 16 bytes announced, 1 left"),
    (SyncGroupRequest, 0, f"{SYNC} 00000009 00", "assignments[0].assignment at byte 21: 9 bytes announced, 1 left"),
    (
        SyncGroupRequest,
        0,
        f"{SYNC} ffffffff",
        "assignments[0].assignment at byte 21: null, but the field can't be null",
    ),
    (FetchRequest, 12, f"{FETCH} 01 00 03 01 61", "cluster_id at byte 32: tag 0 does not fill its 3 bytes"),
)


@pytest.mark.parametrize(("cls", "version", "body", "expected"), CASES)
def test_the_error_says_what_is_wrong(cls: type[Message], version: int, body: str, expected: str) -> None:
    with pytest.raises(DecodeError) as caught:
        cls.decode(bytes.fromhex(body), version)
    assert str(caught.value) == f"{cls.__name__}.{expected}"
