"""A retention override of one millisecond changes nothing: versions 3, 4 and 5, and both layouts of 4 (D1, D2).

Method: the test sends frames, built byte by byte as in OC-3, to a broker's socket. Then the test advances the broker's
clock, fetches the remaining offsets and reads the observations.
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

KINDS = {"v3": (3, True), "v4 as released": (4, True), "v4 of KIP-211": (4, False), "v5": (5, False)}
"""The commits of the test: version, and whether the request has a retention_time."""
TIMES = 4
"""The test sends each commit several times, because the commit cache responds to repeated commits (D13)."""


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
    """Send each kind to its own group, each with other offsets; return the responses."""
    responses: dict[str, list[bytes]] = {}
    for number, (kind, (version, has_retention)) in enumerate(KINDS.items()):
        for time in range(TIMES):
            offset = 100 * number + time
            client.socket.sendall(raw_commit(kind, version, has_retention=has_retention, offset=offset))
            responses.setdefault(kind, []).append(client.read_frame())
    return responses


ACCEPTED = bytes.fromhex("00000007 00000000 00000001 0001 74 00000001 00000000 0000")
"""Correlation id, throttle time, one topic "t" with one partition 0 without an error."""


def test_all_layouts_get_the_same_response(client: RawClient) -> None:
    """Both layouts (D1) and the versions 3 to 5 (OC-1) have the same response."""
    assert commit_all(client) == {kind: [ACCEPTED] * TIMES for kind in KINDS}


def test_no_offset_expires_when_the_override_has_passed(broker: Broker, client: RawClient) -> None:
    """Only offsets.retention.minutes decides when offsets expire (D2)."""
    commit_all(client)
    last = {kind: 100 * number + TIMES - 1 for number, kind in enumerate(KINDS)}

    for step in ({"milliseconds": 1}, {"minutes": 1}, {"days": 6}):
        broker.clock.advance(**step)
        assert {kind: committed(client, kind) for kind in KINDS} == last, f"after {step} more"


def test_the_observations_have_the_layout_of_each_commit(broker: Broker, client: RawClient) -> None:
    """The report shows the layout that a client uses (D1, D2)."""
    commit_all(client)

    (seen,) = broker.observations.snapshot().clients

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
    assert seen.largest_retention_ms == broker.observations.snapshot().largest_retention_ms == RETENTION_MS
    assert not [row for row in seen.errors if row.api_key == 8]


def test_a_frame_with_additional_bytes_has_the_released_layout(broker: Broker, client: RawClient) -> None:
    """Neither layout fits exactly: the broker reads the one of released clients and ignores the rest (D1, BA-7)."""
    frame = raw_commit("g", 4, has_retention=True, offset=5)[4:] + b"more"
    client.socket.sendall(len(frame).to_bytes(4, "big") + frame)

    assert client.read_frame() == ACCEPTED
    assert committed(client, "g") == 5
    (seen,) = broker.observations.snapshot().clients
    assert [row.layout for row in seen.commits] == ["v4 as released"]


def test_a_frame_of_neither_layout_closes_the_connection(client: RawClient) -> None:
    """BA-6."""
    frame = raw_commit("g", 4, has_retention=True, offset=5)[4:-3]
    client.socket.sendall(len(frame).to_bytes(4, "big") + frame)
    client.wait_closed()
