"""A retention override of one millisecond changes nothing: versions 3, 4 and 5, and both layouts of 4 (D1, D2).

Method: frames made by hand, octet by octet as in OC-3, sent to a broker over its socket; its clock is moved; what is
left is fetched, and what was observed is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from kproto_server.broker.broker import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import committed, create_topic, find_coordinator

RETENTION_MS = 1
CORRELATION_ID = 7

KINDS = {
    "v3": (3, True),
    "v4 as released": (4, True),
    "v4 of KIP-211": (4, False),
    "v5": (5, False),
}
"""What is sent: its version, and whether it has a retention_time."""
TIMES = 4
"""Each is sent so often, since a broker may have a shorter way for what it has seen before (D13)."""


def raw_commit(group_id: str, version: int, *, has_retention: bool, offset: int) -> bytes:
    """OffsetCommit of partition 0 of "t", header v1, size included."""
    group = group_id.encode()
    header = struct.pack(">hhih", 8, version, CORRELATION_ID, 1) + b"c"
    member = struct.pack(f">h{len(group)}sih", len(group), group, -1, 0)
    retention = struct.pack(">q", RETENTION_MS) if has_retention else b""
    topics = struct.pack(">ih1siiqh1s", 1, 1, b"t", 1, 0, offset, 1, b"m")
    body = header + member + retention + topics
    return len(body).to_bytes(4, "big") + body


@pytest.fixture(params=["2.1", "2.8", "3.9", "4.4", "latest"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker.running(kafka_version=request.param, clock="manual") as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap_servers, client_id="c") as connected:
        create_topic(connected)
        find_coordinator(connected, "g")
        yield connected


def commit_all(client: RawClient) -> dict[str, list[bytes]]:
    """Send each kind in a group of its own, with offsets that tell them apart; return the answers."""
    answers: dict[str, list[bytes]] = {}
    for number, (kind, (version, has_retention)) in enumerate(KINDS.items()):
        for time in range(TIMES):
            offset = 100 * number + time
            client.socket.sendall(raw_commit(kind, version, has_retention=has_retention, offset=offset))
            answers.setdefault(kind, []).append(client.read_frame())
    return answers


ACCEPTED = bytes.fromhex("00000007 00000000 00000001 0001 74 00000001 00000000 0000")
"""Correlation id, throttle time, one topic "t" with one partition 0 without an error."""


def test_all_are_answered_alike(client: RawClient) -> None:
    """D1: the answer does not tell the layouts apart; OC-1: nor the versions 3 to 5."""
    assert commit_all(client) == {kind: [ACCEPTED] * TIMES for kind in KINDS}


def test_all_offsets_are_still_there_when_the_override_is_long_over(broker: Broker, client: RawClient) -> None:
    """D2: offsets.retention.minutes decides, for all alike."""
    commit_all(client)
    last = {kind: 100 * number + TIMES - 1 for number, kind in enumerate(KINDS)}

    for step in ({"milliseconds": 1}, {"minutes": 1}, {"days": 6}):
        broker.clock.advance(**step)
        assert {kind: committed(client, kind) for kind in KINDS} == last, f"after {step} more"


def test_the_observations_say_which_layout_came(broker: Broker, client: RawClient) -> None:
    """D1, D2: the report tells what a client relies on."""
    commit_all(client)

    (seen,) = broker.snapshot().clients

    assert [(row.api_version, row.layout, row.count, row.overrides) for row in seen.commits] == [
        (3, "v3", TIMES, TIMES),
        (4, "v4 as released", TIMES, TIMES),
        (4, "v4 of KIP-211", TIMES, 0),
    ]
    assert [(row.api_version, row.count) for row in seen.requests if row.api_key == 8] == [
        (3, TIMES),
        (4, 2 * TIMES),
        (5, TIMES),
    ]
    assert seen.largest_retention_ms == broker.snapshot().largest_retention_ms == RETENTION_MS
    assert not [row for row in seen.errors if row.api_key == 8]


def test_bytes_behind_either_layout_make_it_the_released_one(broker: Broker, client: RawClient) -> None:
    """D1, BA-7: neither fits exactly, so it is what clients in the field send; a real broker ignores the rest."""
    frame = raw_commit("g", 4, has_retention=True, offset=5)[4:] + b"more"
    client.socket.sendall(len(frame).to_bytes(4, "big") + frame)

    assert client.read_frame() == ACCEPTED
    assert committed(client, "g") == 5
    (seen,) = broker.snapshot().clients
    assert [row.layout for row in seen.commits] == ["v4 as released"]


def test_a_frame_of_neither_layout_closes(client: RawClient) -> None:
    """BA-6."""
    frame = raw_commit("g", 4, has_retention=True, offset=5)[4:-3]
    client.socket.sendall(len(frame).to_bytes(4, "big") + frame)
    client.wait_closed()
