"""Clients that exceed their quotas, in virtual time: throttle times in responses, and requests that wait."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.quotas.entities import altered, entity_of
from kproto_server.quotas.rate import Window
from kproto_server.quotas.usage import QuotaUsage
from kproto_server.testing import InMemoryBroker
from kproto_server.testing.in_memory import ConnectedPair

QUOTA = 20_000.0
TOO_MUCH = 230_000
"""Bytes of a record: 1.5 s more than the 10 s that a client may send at once."""


def broker_with(key: str, quota: float = QUOTA, **options: Any) -> InMemoryBroker:
    """Return a broker with a quota for the client id "app"."""
    broker = InMemoryBroker(topics={"orders": 1}, **options)
    set_quota(broker, key, quota)
    return broker


def set_quota(broker: InMemoryBroker, key: str, quota: float | None, **names: str | None) -> None:
    cluster = broker.state.cluster
    cluster.set_client_quotas(altered(cluster.client_quotas, entity_of(names or {"client-id": "app"}), {key: quota}))


def produce(size: int, acks: int = 1) -> ProduceRequest:
    batch = build_record_batch([Record(None, b"x" * size, timestamp=1_700_000_000_000)])
    data = TopicProduceData(name="orders", partition_data=(PartitionProduceData(index=0, records=batch),))
    return ProduceRequest(transactional_id=None, acks=acks, timeout_ms=1000, topic_data=(data,))


def fetch(offset: int = 0, *, session_id: int = 0, session_epoch: int = -1, max_bytes: int = 1 << 20) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = (FetchTopic(topic="orders", partitions=(asked,)),) if session_epoch <= 0 else ()
    return FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, session_id=session_id,
        session_epoch=session_epoch, topics=topics, forgotten_topics_data=(),
    )  # fmt: skip


def throttle_ms(client: ConnectedPair, request: Any, version: int) -> int:
    response: Any = client.ask(request, version)
    return int(response.throttle_time_ms)


def pause_ms(broker: InMemoryBroker, client: ConnectedPair) -> int:
    """Return how long the broker does not read the connection."""
    client.send(ApiVersionsRequest(), 0)
    waited = 0
    while client.client.in_flight:
        broker.advance(milliseconds=1)
        waited += 1
    client.responses.clear()
    return waited


def records_of(response: Any) -> int:
    return sum(len(one.records) for topic in response.responses for one in topic.partitions)


def test_a_producer_is_throttled_as_by_a_real_broker() -> None:
    """4.4.0 responds at once with a throttle time of 1506 ms, and to the next request of the connection 1.5 s later."""
    broker = broker_with("producer_byte_rate")
    client = broker.connect("app")
    request = produce(TOO_MUCH)
    assert throttle_ms(client, request, 9) == 1506 - (230_115 - len(client_frame(request))) // 20
    assert pause_ms(broker, client) == 1506 - (230_115 - len(client_frame(request))) // 20
    assert pause_ms(broker, client) == 0


def client_frame(request: ProduceRequest) -> bytes:
    from kproto.headers import request_frame

    return request_frame(request, 9, correlation_id=0, client_id="app")[4:]


def test_a_producer_without_acks_is_throttled() -> None:
    broker = broker_with("producer_byte_rate")
    client = broker.connect("app")
    client.send(produce(TOO_MUCH, acks=0), 9)
    assert 1490 < pause_ms(broker, client) < 1510


def test_other_clients_are_not_throttled() -> None:
    broker = broker_with("producer_byte_rate")
    assert throttle_ms(broker.connect("app"), produce(TOO_MUCH), 9)
    assert not throttle_ms(broker.connect("other"), produce(TOO_MUCH), 9)
    assert throttle_ms(broker.connect("app"), produce(1), 9), "all connections of the group share its quota"


def test_users_have_quotas() -> None:
    broker = broker_with("producer_byte_rate")
    set_quota(broker, "producer_byte_rate", 1e9, user="alice")
    client = broker.connect("app")
    client.connection.info.principal = "User:alice"
    assert not throttle_ms(client, produce(TOO_MUCH), 9)
    set_quota(broker, "producer_byte_rate", None, user="alice")
    set_quota(broker, "producer_byte_rate", 10.0, user=None)
    assert throttle_ms(client, produce(1), 9)


def test_a_throttled_consumer_gets_no_records_and_then_all() -> None:
    broker = broker_with("consumer_byte_rate")
    for _ in range(2):
        broker.connect().ask(produce(150_000), 9)
    client = broker.connect("app")
    assert not throttle_ms(client, fetch(0), 11)
    for _ in range(3):  # until the first Fetch is no more in the windows
        response: Any = client.ask(fetch(1), 11)
        assert 5000 <= response.throttle_time_ms < 5100
        assert response.responses == ()
        assert pause_ms(broker, client) == response.throttle_time_ms
    assert not throttle_ms(client, fetch(1), 11)


def test_a_fetch_is_limited_to_what_the_quota_allows() -> None:
    broker = broker_with("consumer_byte_rate", 100.0)
    for _ in range(10):
        broker.connect().ask(produce(300), 9)
    response: Any = broker.connect("app").ask(fetch(), 11)
    assert not response.throttle_time_ms
    assert 300 < records_of(response) < 1000


@pytest.mark.parametrize("quota", [math.nan, math.inf, -math.inf, 1e308, 0.0, -5.0])
@pytest.mark.parametrize("key", ["producer_byte_rate", "consumer_byte_rate", "request_percentage"])
def test_quotas_that_are_no_rates_are_no_defects(key: str, quota: float) -> None:
    """Releases before 4.4 accept some of them. NaN as `consumer_byte_rate` closed the connection of each Fetch; as in
    Kafka it allows 0 bytes, and no rate is above it."""
    broker = broker_with(key, quota)
    asked: tuple[tuple[Any, int], ...] = (produce(10), 9), (fetch(), 11)
    throttled = [throttle_ms(broker.connect("app"), *one) for one in asked]
    if not quota <= 0:
        assert throttled == [0, 0]


def test_a_throttled_full_fetch_has_no_session_and_an_incremental_one_keeps_it() -> None:
    broker = broker_with("consumer_byte_rate")
    client = broker.connect("app")
    opened: Any = client.ask(fetch(session_epoch=0), 11)
    assert opened.session_id
    broker.connect().ask(produce(TOO_MUCH), 9)
    incremental: Any = client.ask(fetch(session_id=opened.session_id, session_epoch=1), 11)
    assert (incremental.session_id, incremental.responses) == (opened.session_id, ())
    assert incremental.throttle_time_ms
    broker.advance(milliseconds=incremental.throttle_time_ms)
    full: Any = client.ask(fetch(session_epoch=0), 11)
    assert full.throttle_time_ms
    assert (full.session_id, full.responses) == (0, ())


def test_before_2_0_the_response_itself_waits() -> None:
    """KIP-219. These releases have quotas from a data directory of a later one only."""
    broker = broker_with("producer_byte_rate", kafka_version="1.1")
    client = broker.connect("app")
    client.send(produce(TOO_MUCH), 5)
    broker.advance(milliseconds=1400)
    assert not client.responses
    broker.advance(milliseconds=200)
    response: Any = client.responses.pop()
    assert 1490 < response.throttle_time_ms < 1510


@pytest.mark.parametrize(("count", "seconds", "allowed"), [(2, 1, 19_000), (11, 2, 390_000)])
def test_settings_give_the_windows(count: int, seconds: int, allowed: int) -> None:
    settings = {"quota.window.num": str(count), "quota.window.size.seconds": str(seconds)}
    broker = broker_with("producer_byte_rate", settings=settings)
    client = broker.connect("app")
    assert not throttle_ms(client, produce(allowed), 9)
    assert throttle_ms(client, produce(allowed), 9)


def test_a_reset_forgets_rates_and_quotas() -> None:
    broker = broker_with("producer_byte_rate")
    assert throttle_ms(broker.connect("app"), produce(TOO_MUCH), 9)
    broker.state.reset()
    broker.state.cluster.create_topic("orders", partition_count=1, replication_factor=1)
    assert not broker.state.cluster.client_quotas
    set_quota(broker, "producer_byte_rate", QUOTA)
    assert not throttle_ms(broker.connect("app"), produce(1000), 9)


@pytest.mark.parametrize(
    "rule",
    [
        None,
        {"api": "Heartbeat", "error": "NOT_COORDINATOR"},
        {"api": "Produce", "client_id": "other", "error": "NOT_COORDINATOR"},
    ],
)
def test_a_quota_counts_from_its_setting_to_its_removal(rule: dict[str, Any] | None) -> None:
    """Whatever endpoints the broker has made before it, also those that fault rules keep."""
    broker = InMemoryBroker(topics={"orders": 1})
    if rule is not None:
        broker.faults.add(rule)
    client = broker.connect("app")
    assert not throttle_ms(client, produce(TOO_MUCH), 9)
    set_quota(broker, "producer_byte_rate", QUOTA)
    assert throttle_ms(client, produce(TOO_MUCH), 9)
    pause_ms(broker, client)
    set_quota(broker, "producer_byte_rate", None)
    assert not throttle_ms(client, produce(TOO_MUCH), 9)
    set_quota(broker, "producer_byte_rate", QUOTA)
    assert throttle_ms(client, produce(TOO_MUCH), 9)


def test_rates_of_few_groups_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto_server.quotas.usage.KEPT_MAX", 20)
    broker = broker_with("producer_byte_rate")
    set_quota(broker, "producer_byte_rate", QUOTA, **{"client-id": None})
    for number in range(100):
        broker.connect(f"client {number}").ask(produce(1), 9)
        broker.advance(milliseconds=1)
    rates = broker.state.cluster.quota_usage.rates
    assert len(rates) <= 20
    assert any("client 99" in key for key in rates)


def test_a_value_may_be_taken_back_whose_rate_had_to_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto_server.quotas.usage.KEPT_MAX", 10)
    usage, window = QuotaUsage(), Window(11, 1000)
    keys = [(1, "consumer_byte_rate", None, f"client {number}") for number in range(11)]
    for key in keys:
        usage.record(key, 1.0, 1.0, window, 0)
    usage.unrecord(keys[0], 1.0, window, 0)
    assert keys[0] not in usage.rates
