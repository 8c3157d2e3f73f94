"""Clients that exceed their quota of handler time (KIP-124), with a handler of a known duration."""

from __future__ import annotations

from typing import Any

from kproto.message import Request
from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server.broker.broker import Broker
from kproto_server.testing import InMemoryBroker
from kproto_server.testing.in_memory import ConnectedPair
from tests.coordinator.broker_state import commit_request
from tests.throttling.test_throttling import broker_with, fetch, pause_ms, produce, set_quota

KEY = "request_percentage"
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


class SlowHandlers:
    """Real time that goes on between the begin and the end of each handler."""

    def __init__(self, broker: InMemoryBroker, duration_s: float) -> None:
        self._now_s = 0.0
        self._duration_s = duration_s
        broker.dispatcher.monotonic_s = self._monotonic_s

    def _monotonic_s(self) -> float:
        self._now_s += self._duration_s
        return self._now_s


def throttle_times(client: ConnectedPair, request: Request, version: int, count: int) -> list[int]:
    found = []
    for _ in range(count):
        response: Any = client.ask(request, version)
        found.append(response.throttle_time_ms)
        pause_ms(client._broker, client)
    return found


def slow_broker(percentage: float, duration_s: float = 0.05, **options: Any) -> InMemoryBroker:
    broker = broker_with(KEY, percentage, **options)
    SlowHandlers(broker, duration_s)
    return broker


def test_a_client_that_takes_too_much_time_is_throttled() -> None:
    """0.05 s are 5 % of a second: 0.5 % of the 10 seconds that count at least."""
    broker = slow_broker(0.8)
    client = broker.connect("app")
    assert [int(one.throttle_time_ms) for one in _responses(client, 3)] == [0, 1000, 1000]


def _responses(client: ConnectedPair, count: int) -> list[Any]:
    """Return the responses of as many connections of the client: one that is throttled is not read."""
    return [client._broker.connect("app").ask(HEARTBEAT, 3) for _ in range(count)]


def test_the_throttle_time_is_that_of_the_rate_and_at_most_one_window() -> None:
    broker = slow_broker(0.99)
    assert [one.throttle_time_ms for one in _responses(broker.connect("app"), 3)] == [0, 101, 1000]
    assert slow_broker(0.99, settings={"quota.window.size.seconds": "2"}).connect("app")


def test_a_throttled_connection_is_not_read() -> None:
    broker = slow_broker(0.001)
    client = broker.connect("app")
    response: Any = client.ask(HEARTBEAT, 3)
    assert response.throttle_time_ms == 1000
    set_quota(broker, KEY, None)
    assert pause_ms(broker, client) == 1000
    assert pause_ms(broker, client) == 0


def test_each_api_is_throttled() -> None:
    broker = slow_broker(0.001)
    broker.connect("other").ask(produce(10), 9)
    for request, version in ((produce(1), 9), (fetch(), 11), (HEARTBEAT, 3), (ApiVersionsRequest(), 1)):
        response: Any = broker.connect("app").ask(request, version)
        assert response.throttle_time_ms == 1000, request
        if request == fetch():
            assert response.responses == (), "as above the quota for bytes"
    response = broker.connect("other").ask(HEARTBEAT, 3)
    assert response.throttle_time_ms == 0


def test_the_longer_throttle_time_counts() -> None:
    broker = slow_broker(0.001)
    set_quota(broker, "producer_byte_rate", 20_000.0)
    response: Any = broker.connect("app").ask(produce(230_000), 9)
    assert 1490 < response.throttle_time_ms < 1510
    response = broker.connect("app").ask(produce(1), 9)
    assert response.throttle_time_ms > 1490


def test_a_producer_without_acks_is_not_throttled() -> None:
    broker = slow_broker(0.001)
    client = broker.connect("app")
    client.send(produce(10, acks=0), 9)
    assert pause_ms(broker, client) == 0


def test_cached_commits_count() -> None:
    broker = broker_with("producer_byte_rate")
    client = broker.connect("app")
    request: OffsetCommitRequest = commit_request("g", {"orders": {0: 1}})
    for _ in range(5):
        client.ask(request, 5)
    SlowHandlers(broker, 0.05)
    set_quota(broker, KEY, 0.001)
    response: Any = client.ask(request, 5)
    assert response.throttle_time_ms == 1000
    set_quota(broker, KEY, None)
    broker.advance(milliseconds=1000)
    response = client.ask(request, 5)
    assert response.throttle_time_ms == 0


def test_time_is_measured() -> None:
    with Broker.running() as broker:
        from tests.network.raw_client import RawClient
        from tests.security.quota_scripts import REQUEST, change

        with (
            RawClient(broker.bootstrap_servers, "admin") as admin,
            RawClient(broker.bootstrap_servers, "app") as client,
        ):
            change({"client-id": "app"}, (REQUEST, 1e-6))(admin, 1)
            assert client.ask(HEARTBEAT, 3).throttle_time_ms == 1000
            assert admin.ask(HEARTBEAT, 3).throttle_time_ms == 0
