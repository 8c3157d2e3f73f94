"""The relay of one connection: what is sent arrives, and a side that does not read stops the other.

Method. Pairs of sockets in one process: the test has the client's and the broker's far ends.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import trio
import trio.testing

from kproto.messages.k03_metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto_server.network.tls import TlsSocket
from kproto_server.proxy.cutting import PENDING_MAX
from kproto_server.proxy.exchanges import LARGE_BYTES
from kproto_server.proxy.faults import ProxyRules
from kproto_server.proxy.relay import READ_MAX_BYTES, TURN_BYTES, Relay
from kproto_server.proxy.sockets import begin_tls
from kproto_server.proxy.upstream import tls_context
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.security.certificates import CertificateKind
from kproto_server.security.tls_files import TlsFiles
from tests.proxy.exchanged import OWN_HOST, asked, new_exchanges, raw, response

pytestmark = pytest.mark.trio

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
HOST = "localhost"

BUFFERED_MAX_BYTES = 8 * READ_MAX_BYTES
"""More than the relay and the buffers of four sockets hold."""
LARGE = bytes(range(256)) * (8 * BUFFERED_MAX_BYTES // 256)
PRODUCE = raw(0, 2, 1, b"\0\1" + LARGE)
FETCHED = (len(LARGE) + 4).to_bytes(4, "big") + (1).to_bytes(4, "big") + LARGE


class Tls(NamedTuple):
    """Which sides have TLS."""

    client: TlsFiles | None = None
    broker: TlsFiles | None = None


@pytest.fixture(params=["plain", "client", "broker"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> Tls:
    if request.param == "plain":
        return Tls()
    return Tls(**{request.param: TlsFiles(str(tmp_path), (HOST,), CertificateKind.AUTO)})


def server_context(tls: TlsFiles) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tls.certificate_file, tls.key_file)
    return context


class Ends:
    """The far ends of a relay's sockets."""

    def __init__(self, tls: Tls, rules: ProxyRules | None = None) -> None:
        near_client, far_client = socket.socketpair()
        near_broker, far_broker = socket.socketpair()
        near_client.setblocking(False)
        near_broker.setblocking(False)
        self._near_client: socket.socket | TlsSocket = near_client
        self._near_broker = near_broker
        self.failures: list[str] = []
        self.client: Stream = trio.SocketStream(trio.socket.from_stdlib_socket(far_client))
        self.broker: Stream = trio.SocketStream(trio.socket.from_stdlib_socket(far_broker))
        self._client_context: ssl.SSLContext | None = None
        if tls.client is not None:
            self._near_client = TlsSocket(server_context(tls.client), near_client, self.failures.append)
            context = tls_context(str(tls.client.ca_file))
            self.client = trio.SSLStream(self.client, context, server_hostname=HOST, https_compatible=True)
        if tls.broker is not None:
            self._client_context = tls_context(str(tls.broker.ca_file))
            context = server_context(tls.broker)
            self.broker = trio.SSLStream(self.broker, context, server_side=True, https_compatible=True)
        self.exchanges = new_exchanges(rules=rules)
        self.relay: Relay | None = None
        self.sent = 0

    async def send(self, stream: Stream, data: bytes) -> None:
        """Send in small parts, and count them."""
        for at in range(0, len(data), 65536):
            await stream.send_all(data[at : at + 65536])
            self.sent += 65536

    async def run(self) -> None:
        broker = self._near_broker
        if self._client_context is not None:
            broker = await begin_tls(broker, self._client_context, HOST)
        self.relay = Relay(self._near_client, broker, self.exchanges)
        with closing(self._near_client), broker:
            await self.relay.run()


@asynccontextmanager
async def relaying(
    tls: Tls = Tls(),  # noqa: B008 - it does not change
    rules: ProxyRules | None = None,
) -> AsyncIterator[Ends]:
    ends = Ends(tls, rules)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.run)
        yield ends
        nursery.cancel_scope.cancel()
    for stream in (ends.client, ends.broker):
        await trio.aclose_forcefully(stream)


async def received(stream: Stream, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = await stream.receive_some()
        assert part, "the stream ended"
        data += part
    return bytes(data)


async def all_blocked() -> None:
    await trio.testing.wait_all_tasks_blocked(0.05)


async def test_a_broker_that_does_not_read_stops_the_client(tls: Tls) -> None:
    async with relaying(tls) as ends, trio.open_nursery() as nursery:
        nursery.start_soon(ends.send, ends.client, PRODUCE)
        await all_blocked()
        assert ends.sent < BUFFERED_MAX_BYTES
        assert await received(ends.broker, len(PRODUCE)) == PRODUCE


async def test_a_client_that_does_not_read_stops_the_broker(tls: Tls) -> None:
    async with relaying(tls) as ends, trio.open_nursery() as nursery:
        request = raw(0x7000, 0, 1)  # of an API that is not known: its response is not collected
        await ends.client.send_all(request)
        assert await received(ends.broker, len(request)) == request
        nursery.start_soon(ends.send, ends.broker, FETCHED)
        await all_blocked()
        assert ends.sent < BUFFERED_MAX_BYTES
        assert await received(ends.client, len(FETCHED)) == FETCHED


async def test_the_response_of_a_fault_rule_is_behind_a_large_one() -> None:
    rules = ProxyRules(KafkaVersion.named("latest"), lambda: 0, lambda seed: Random(seed).random)  # noqa: S311
    rules.add({"api": "Heartbeat", "error": "UNKNOWN_MEMBER_ID"})
    async with relaying(rules=rules) as ends, trio.open_nursery() as nursery:
        request = raw(0x7000, 0, 1)
        await ends.client.send_all(request)
        assert await received(ends.broker, len(request)) == request
        nursery.start_soon(ends.send, ends.broker, FETCHED)
        await all_blocked()
        await ends.client.send_all(asked(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0, 2))
        await all_blocked()
        both = FETCHED + b"\0\0\0\6\0\0\0\2\0\x19"
        assert await received(ends.client, len(both)) == both


async def test_a_large_response_is_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The response of a fault rule waits for it."""
    done = trio.Event()

    async def run_sync(work: Callable[[], Any]) -> Any:
        await done.wait()
        return work()

    monkeypatch.setattr(trio.to_thread, "run_sync", run_sync)
    rules = ProxyRules(KafkaVersion.named("latest"), lambda: 0, lambda seed: Random(seed).random)  # noqa: S311
    rules.add({"api": "Heartbeat", "error": "UNKNOWN_MEMBER_ID"})
    topics = tuple(MetadataResponseTopic(error_code=0, name=f"{number:0>100}", partitions=()) for number in range(3000))
    broker = MetadataResponseBroker(node_id=1, host="b", port=9092)
    of_broker = MetadataResponse(brokers=(broker,), topics=topics)
    of_proxy = of_broker.replace(brokers=(broker.replace(host=OWN_HOST, port=10092),))
    assert len(response(of_broker, 9, 1)) > LARGE_BYTES
    async with relaying(rules=rules) as ends, trio.open_nursery() as nursery:
        requests = asked(MetadataRequest(topics=None), 9, 1)
        await ends.client.send_all(requests)
        await received(ends.broker, len(requests))
        nursery.start_soon(ends.broker.send_all, response(of_broker, 9, 1))
        await all_blocked()
        await ends.client.send_all(asked(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0, 2))
        await all_blocked()
        with trio.move_on_after(0):
            raise AssertionError(await ends.client.receive_some())
        done.set()
        expected = response(of_proxy, 9, 1) + b"\0\0\0\6\0\0\0\2\0\x19"
        assert await received(ends.client, len(expected)) == expected


async def test_a_large_response_that_cannot_be_read_passes() -> None:
    async with relaying() as ends, trio.open_nursery() as nursery:
        request = raw(2, 1, 1)
        await ends.client.send_all(request)
        assert await received(ends.broker, len(request)) == request
        damaged = (LARGE_BYTES + 4).to_bytes(4, "big") + (1).to_bytes(4, "big") + b"\x7f" * LARGE_BYTES
        nursery.start_soon(ends.broker.send_all, damaged)
        assert await received(ends.client, len(damaged)) == damaged


async def test_a_fault_rule_closes_the_connection_behind_the_response_before() -> None:
    """The response has come, and the client has not read it yet."""
    rules = ProxyRules(KafkaVersion.named("latest"), lambda: 0, lambda seed: Random(seed).random)  # noqa: S311
    rules.add({"api": "Heartbeat", "close": True})
    fetched = (READ_MAX_BYTES + 4).to_bytes(4, "big") + (1).to_bytes(4, "big") + bytes(READ_MAX_BYTES)
    async with relaying(rules=rules) as ends, trio.open_nursery() as nursery:
        request = raw(2, 1, 1)  # ListOffsets, whose response is collected
        await ends.client.send_all(request)
        assert await received(ends.broker, len(request)) == request
        nursery.start_soon(ends.send, ends.broker, fetched)
        await all_blocked()
        await ends.client.send_all(asked(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0, 2))
        await all_blocked()
        assert await received(ends.client, len(fetched)) == fetched
        assert await ends.client.receive_some() == b""


async def test_requests_without_responses_stop_the_client() -> None:
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    request = asked(heartbeat, 0, 1)
    response = b"\0\0\0\6\0\0\0\1\0\0"
    count = 10 * PENDING_MAX
    async with relaying() as ends, trio.open_nursery() as nursery:
        nursery.start_soon(ends.send, ends.client, request * count)
        may_respond = trio.Event()

        async def broker() -> None:
            size = responded = 0
            while responded < count:
                with trio.CancelScope() as reading:
                    nursery.start_soon(stop_reading, reading)
                    while not may_respond.is_set():
                        size += len(await ends.broker.receive_some())
                await ends.broker.send_all(response * (size // len(request) - responded))
                responded = size // len(request)
                if responded < count:
                    size += len(await ends.broker.receive_some())

        async def stop_reading(reading: trio.CancelScope) -> None:
            await may_respond.wait()
            reading.cancel()

        nursery.start_soon(broker)
        await all_blocked()
        most = PENDING_MAX + READ_MAX_BYTES // len(request)
        assert PENDING_MAX <= len(ends.exchanges.pending) <= most < count
        may_respond.set()
        assert await received(ends.client, count * len(response)) == response * count
        assert not ends.exchanges.pending


async def test_one_turn_looks_at_a_part_of_what_a_client_has_sent() -> None:
    """Other connections are served meanwhile, and the limit on requests without a response holds."""
    request = asked(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0, 1)
    near_client, far_client = socket.socketpair()
    near_broker, far_broker = socket.socketpair()
    exchanges = new_exchanges()
    with near_client, far_client, near_broker, far_broker:
        for sock in (near_client, near_broker):
            sock.setblocking(False)
        broker = trio.SocketStream(trio.socket.from_stdlib_socket(far_broker))
        relay = Relay(near_client, near_broker, exchanges, received=request * (READ_MAX_BYTES // len(request)))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(relay.run)
            await received(broker, PENDING_MAX * len(request))
            await all_blocked()
            assert PENDING_MAX <= len(exchanges.pending) <= PENDING_MAX + TURN_BYTES // len(request)
            nursery.cancel_scope.cancel()


async def test_the_last_requests_of_a_client_that_ends_arrive(tls: Tls) -> None:
    produce = raw(0, 2, 1, b"\0\0" + bytes(100_000))
    async with relaying(tls) as ends:
        await ends.client.send_all(produce)
        await ends.client.aclose()
        assert await received(ends.broker, len(produce)) == produce
        assert await ends.broker.receive_some() == b""
        await ends.broker.aclose()
        await all_blocked()
        assert ends.relay is not None
        assert ends.relay.has_client_ended


async def test_the_client_receives_the_last_responses_of_a_broker_that_ends(tls: Tls) -> None:
    async with relaying(tls) as ends:
        await ends.client.send_all(asked(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0, 1))
        await ends.broker.receive_some()
        await ends.broker.send_all(b"\0\0\0\6\0\0\0\1\0\0")
        await ends.broker.aclose()
        assert await received(ends.client, 10) == b"\0\0\0\6\0\0\0\1\0\0"
        assert await ends.client.receive_some() == b""
        assert ends.relay is not None
        assert not ends.relay.has_client_ended
