"""Buffers of all connections together are limited; above the limit the broker closes the slowest connection."""

from __future__ import annotations

import struct
import sys
from contextlib import ExitStack

import pytest

from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto_server import Broker
from kproto_server.network.buffer_quota import BufferQuota
from tests.commandline.commands import kproto_started, line_of
from tests.coordinator.broker_state import Offsets, commit_request
from tests.network.raw_client import RawClient
from tests.network.requests import create_topic, find_coordinator, topic_names
from tests.network.test_backpressure import resident_bytes

FRAME_MAX_BYTES = 104857600
"""The default of ``socket.request.max.bytes``."""
ANNOUNCERS = 200
PIECE = bytes(200)
GROWTH_MAX_BYTES = 16 << 20
"""The limit for 200 connections, which have announced 20 GB."""
PART_BYTES = 60_000
"""Less than one read, and more than half of the limit that the test sets."""
LIMIT = {"queued.max.request.bytes": 100_000}
LONG_NAME = 25_000 * "t"
LONG_REQUEST = OffsetFetchRequest(
    group_id="g",
    topics=tuple(
        OffsetFetchRequestTopic(name=LONG_NAME, partition_indexes=(0,)) for _ in range(2 * PART_BYTES // len(LONG_NAME))
    ),
)
"""Twice that long."""
PARTITIONS = 3000
"""With 4 kB of metadata each their offsets are more than the kernel buffers of one response."""


class Client:
    """An owner of buffered bytes, and the reason for its end."""

    def __init__(self, quota: BufferQuota) -> None:
        self._quota = quota
        self.reason: str | None = None

    def give_up(self, reason: str) -> None:
        self.reason = reason
        self._quota.remove(self)


def test_the_client_without_progress_for_the_longest_time_is_closed() -> None:
    quota = BufferQuota("responses", 100)
    first, second, third = clients = [Client(quota) for _ in range(3)]
    quota.note(first, 40, made_progress=False)
    quota.note(second, 40, made_progress=False)
    quota.note(first, 50, made_progress=False)
    quota.note(third, 20, made_progress=False)
    assert [client.reason for client in clients] == [
        "responses: 50 bytes of this connection and 110 of all connections, more than 100",
        None,
        None,
    ]
    assert quota.total_bytes == 60


def test_a_client_that_makes_progress_is_closed_last() -> None:
    quota = BufferQuota("responses", 100)
    first, second, third = (Client(quota) for _ in range(3))
    quota.note(first, 40, made_progress=True)
    quota.note(second, 40, made_progress=True)
    quota.note(first, 30, made_progress=True)
    quota.note(third, 50, made_progress=True)
    assert (first.reason, third.reason) == (None, None)
    assert second.reason is not None
    quota.remove(first)
    quota.remove(first)
    assert quota.total_bytes == 50


def test_a_single_client_may_exceed_the_quota() -> None:
    quota = BufferQuota("responses", 100)
    alone = Client(quota)
    quota.note(alone, 1000, made_progress=False)
    assert alone.reason is None


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: /proc reports a process's memory")
def test_announced_sizes_take_no_memory_and_delay_no_client() -> None:
    with kproto_started("serve", "--port", "0") as process, ExitStack() as stack:
        address = line_of(process).removeprefix("kproto: listening on ")
        other = stack.enter_context(RawClient(address))
        create_topic(other)
        before = resident_bytes(process)
        slow = [stack.enter_context(RawClient(address)) for _ in range(ANNOUNCERS)]
        for client in slow:
            client.socket.sendall(struct.pack(">i", FRAME_MAX_BYTES))
        for _ in range(5):
            for client in slow:
                client.socket.sendall(PIECE)
            assert topic_names(other) == {"t"}
        assert resident_bytes(process) - before < GROWTH_MAX_BYTES


def test_the_oldest_incomplete_request_is_given_up() -> None:
    with Broker.running(settings=LIMIT) as broker, ExitStack() as stack:
        clients = [stack.enter_context(RawClient(broker.bootstrap_servers)) for _ in range(3)]
        other = stack.enter_context(RawClient(broker.bootstrap_servers))
        frames = [client.frame(LONG_REQUEST, 3, number) for number, client in enumerate(clients)]
        for client, frame in zip(clients[:2], frames, strict=False):
            client.socket.sendall(frame[:PART_BYTES])
            topic_names(other)  # the broker has read the bytes at the latest in the next iteration
            topic_names(other)
        assert clients[0].read_ids_to_the_end() == []
        clients[1].socket.sendall(frames[1][PART_BYTES:])
        assert clients[1].read_ids(1) == [1], "the other client can complete its request"
        clients[2].socket.sendall(frames[2])
        assert clients[2].read_ids(1) == [2], "completed requests do not count"
        (reason,) = [closed.reason for client in broker.observations.snapshot().clients for closed in client.closed]
        assert reason.startswith(f"incomplete requests: {PART_BYTES} bytes")
        assert broker._call(lambda server: server.loop.buffer_quotas.incomplete_requests.total_bytes) == 0


def test_the_client_that_stopped_reading_first_is_given_up() -> None:
    offsets: Offsets = {"t": dict.fromkeys(range(PARTITIONS), (7, "x" * 4000))}
    all_offsets = (OffsetFetchRequest(group_id="g", topics=None), 3)
    with Broker.running(settings={"num.partitions": PARTITIONS}) as broker, ExitStack() as stack:
        other = stack.enter_context(RawClient(broker.bootstrap_servers))
        create_topic(other)
        find_coordinator(other, "g")
        other.ask(commit_request("g", offsets), 2)
        unsent = broker._call(lambda server: server.loop.buffer_quotas.unsent_responses)
        unsent.max_bytes = 1000
        slow = [stack.enter_context(RawClient(broker.bootstrap_servers, receive_buffer_bytes=4096)) for _ in range(2)]
        for client in slow:
            client.send(all_offsets)
            broker.requests.wait(count=slow.index(client) + 1, api="OffsetFetch", error=0)
            topic_names(other)  # the broker has sent as much of the response as fits
            assert unsent.total_bytes > 1000
        with pytest.raises(ConnectionError):
            slow[0].read_frame()
        assert topic_names(other) == {"t", "__consumer_offsets"}
        assert slow[1].read_ids(1) == [1]
        assert broker._call(lambda _: unsent.total_bytes) == 0
        (reason,) = [closed.reason for client in broker.observations.snapshot().clients for closed in client.closed]
        assert reason.startswith("unsent responses: ")
