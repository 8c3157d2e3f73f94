"""Fault rules in a proxy: what the client gets, what the cluster gets, and in which order.

Method. Pairs of sockets in one process: the test has the client's and the broker's far ends. Time jumps to the next
deadline when nothing else happens.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.headers import read_request_header, read_response
from kproto.message import Request, Response
from kproto.messages.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kproto.messages.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kproto.messages.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kproto.messages.k78_share_fetch import ShareFetchRequest
from kproto_server.observation.observe import Observations
from kproto_server.observation.observed import ErrorsSeen
from kproto_server.proxy import faults
from kproto_server.proxy.exchanges import BEGINNING_BYTES
from kproto_server.proxy.faults import ProxyRules
from kproto_server.proxy.relay import Relay
from kproto_server.releases.kafka_version import KafkaVersion
from tests.proxy.exchanged import OWN_HOST, asked, new_exchanges, response

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
BEATEN = HeartbeatResponse(throttle_time_ms=0, error_code=0)
TOPIC_ID = bytes(range(16))


@pytest.fixture
def clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0.01)


def run(clock: trio.testing.MockClock, test: Any) -> None:
    async def limited() -> None:
        with trio.fail_after(3600):
            await test()

    trio.run(limited, clock=clock)


def rules_at(now_ms: Callable[[], int]) -> ProxyRules:
    return ProxyRules(KafkaVersion.named("4.4"), now_ms, lambda seed: Random(seed).random)  # noqa: S311 - reproducible


class Ends:
    """The far ends of a relay that has rules."""

    def __init__(self, rules: tuple[dict[str, Any], ...]) -> None:
        self.rules = rules_at(lambda: int(trio.current_time() * 1000))
        for rule in rules:
            self.rules.add(rule)
        self.observations = Observations()
        self.exchanges = new_exchanges(self.observations, "4.4", self.rules)
        self._near = socket.socketpair()
        self._near_broker = socket.socketpair()
        for one in (self._near[0], self._near_broker[0]):
            one.setblocking(False)
        self.client = trio.SocketStream(trio.socket.from_stdlib_socket(self._near[1]))
        self.broker = trio.SocketStream(trio.socket.from_stdlib_socket(self._near_broker[1]))
        self.relay = Relay(self._near[0], self._near_broker[0], self.exchanges)

    async def run(self) -> None:
        with closing(self._near[0]), closing(self._near_broker[0]):
            await self.relay.run()

    async def asks(self, *requests: tuple[Request, int]) -> None:
        """Have the client send requests with the correlation ids 1, 2 ..."""
        frames = [asked(request, version, number) for number, (request, version) in enumerate(requests, 1)]
        await self.client.send_all(b"".join(frames))

    async def broker_gets(self, api: type[Request], version: int) -> Any:
        """Return the next request that the broker gets."""
        frame = await self._frame(self.broker)
        header = read_request_header(frame)
        assert (header.api_key, header.api_version) == (api._api_key, version)
        return api.decode(frame[header.body_position :], version)

    async def broker_responds(self, value: Response, version: int, correlation_id: int = 1) -> None:
        await self.broker.send_all(response(value, version, correlation_id))

    async def client_gets(self, api: type[Request], version: int, correlation_id: int = 1) -> Any:
        """Return the next response that the client gets."""
        found, value = read_response(await self._frame(self.client), api, version)
        assert found == correlation_id
        return value

    async def _frame(self, stream: trio.SocketStream) -> bytes:
        return await self._bytes(stream, int.from_bytes(await self._bytes(stream, 4), "big"))

    async def _bytes(self, stream: trio.SocketStream, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = await stream.receive_some(size - len(data))
            assert part, "the connection has ended"
            data += part
        return data

    @property
    def errors(self) -> tuple[ErrorsSeen, ...]:
        return self.observations.snapshot().clients[0].errors


@asynccontextmanager
async def relaying(*rules: dict[str, Any]) -> AsyncIterator[Ends]:
    ends = Ends(rules)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.run)
        yield ends
        nursery.cancel_scope.cancel()
    for stream in (ends.client, ends.broker):
        await trio.aclose_forcefully(stream)


async def gets_nothing(stream: trio.SocketStream) -> None:
    """Assert that nothing arrives in an hour of virtual time less than the limit of the test."""
    with trio.move_on_after(60):
        raise AssertionError(await stream.receive_some(1))


def produced(*partitions: int, acks: int = -1) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=one, records=b"") for one in partitions)
    return ProduceRequest(acks=acks, timeout_ms=1, topic_data=(TopicProduceData(name="orders", partition_data=data),))


def test_an_error_before_the_request_keeps_it_from_the_cluster(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", "error": "NOT_COORDINATOR", "times": 1}) as ends:
            await ends.asks((HEARTBEAT, 4), (HEARTBEAT, 4))
            failed = await ends.client_gets(HeartbeatRequest, 4, 1)
            assert failed.error_code == ErrorCode.NOT_COORDINATOR
            await ends.broker_gets(HeartbeatRequest, 4)  # the second one
            await ends.broker_responds(BEATEN, 4, 2)
            assert (await ends.client_gets(HeartbeatRequest, 4, 2)).error_code == 0
            assert ends.errors == (ErrorsSeen(12, 4, ErrorCode.NOT_COORDINATOR, 1),)
            assert not ends.exchanges.pending

    run(clock, test)


def test_an_error_after_the_request_lets_it_take_effect(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", "error": "NOT_COORDINATOR", "when": "after"}) as ends:
            await ends.asks((HEARTBEAT, 4))
            await ends.broker_gets(HeartbeatRequest, 4)
            await ends.broker_responds(BEATEN, 4)
            assert (await ends.client_gets(HeartbeatRequest, 4)).error_code == ErrorCode.NOT_COORDINATOR

    run(clock, test)


def test_an_error_of_one_partition_leaves_the_others_alone(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        rule = {"api": "Produce", "topic": "orders", "partition": 1, "error": "NOT_ENOUGH_REPLICAS"}
        async with relaying(rule) as ends:
            await ends.asks((produced(0, 1), 9))
            (topic,) = (await ends.broker_gets(ProduceRequest, 9)).topic_data
            assert [one.index for one in topic.partition_data] == [0]
            done = PartitionProduceResponse(index=0, error_code=0, base_offset=7)
            await ends.broker_responds(
                ProduceResponse(responses=(TopicProduceResponse(name="orders", partition_responses=(done,)),)), 9
            )
            (found,) = (await ends.client_gets(ProduceRequest, 9)).responses
            errors = [(one.index, one.error_code, one.base_offset) for one in found.partition_responses]
            assert errors == [(0, 0, 7), (1, ErrorCode.NOT_ENOUGH_REPLICAS, -1)]

    run(clock, test)


def test_a_retention_override_is_kept_when_a_commit_is_sent_in_part(clock: trio.testing.MockClock) -> None:
    from kproto.messages.k08_offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic

    def topic(name: str) -> OffsetCommitRequestTopic:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        return OffsetCommitRequestTopic(name=name, partitions=(partition,))

    async def test() -> None:
        async with relaying({"api": "OffsetCommit", "topic": "a", "error": "UNKNOWN_TOPIC_OR_PARTITION"}) as ends:
            request = OffsetCommitRequest(group_id="g", retention_time_ms=5, topics=(topic("a"), topic("b")))
            await ends.asks((request, 4))
            sent = await ends.broker_gets(OffsetCommitRequest, 4)
            assert (sent.retention_time_ms, [one.name for one in sent.topics]) == (5, ["b"])

    run(clock, test)


@pytest.mark.parametrize("kind", ["close", "reset"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_closes_instead_of_a_response(kind: str, when: str, clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", kind: True, "when": when}) as ends:
            await ends.asks((HEARTBEAT, 4))
            if when == "after":
                await ends.broker_gets(HeartbeatRequest, 4)
                await ends.broker_responds(BEATEN, 4)
            assert await ends.client.receive_some(1) == b""
            assert await ends.broker.receive_some(1) == b""
            assert ends.relay.close_reason == "fault rule 1"

    run(clock, test)


def test_without_acks_an_error_closes_the_connection(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}) as ends:
            await ends.asks((produced(0, acks=0), 9))
            assert await ends.client.receive_some(1) == b""
            assert await ends.broker.receive_some(1) == b""

    run(clock, test)


def test_without_acks_a_delayed_request_leaves_the_next_ones_alone(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Produce", "delay_ms": 5_000}) as ends:
            await ends.asks((produced(0, acks=0), 9), (HEARTBEAT, 4))
            await ends.broker_gets(ProduceRequest, 9)
            assert trio.current_time() >= 5
            await ends.broker_gets(HeartbeatRequest, 4)
            await ends.broker_responds(BEATEN, 4, 2)
            await ends.client_gets(HeartbeatRequest, 4, 2)

    run(clock, test)


def test_a_request_without_a_response_keeps_later_ones_waiting(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", "no_response": True, "times": 1}) as ends:
            await ends.asks((HEARTBEAT, 4), (HEARTBEAT, 4))
            await gets_nothing(ends.client)
            await gets_nothing(ends.broker)
            await ends.client.send_eof()
            await ends.broker_gets(HeartbeatRequest, 4)  # as a broker handles what a client has sent before its end
            assert await ends.broker.receive_some(1) == b""

    run(clock, test)


@pytest.mark.parametrize("count", [1, 2, 5000])
def test_a_delayed_request_takes_effect_at_once_if_the_client_ends(count: int, clock: trio.testing.MockClock) -> None:
    """It may have sent further requests before its end."""

    async def test() -> None:
        async with relaying({"api": "Heartbeat", "delay_ms": 100_000, "times": 1}) as ends:
            await ends.asks((HEARTBEAT, 4))
            await trio.sleep(1)
            await ends.asks(*[(HEARTBEAT, 4)] * (count - 1))
            await ends.client.send_eof()
            await ends.broker_gets(HeartbeatRequest, 4)
            assert trio.current_time() < 100
            await ends.broker_responds(BEATEN, 4)
            for _ in range(count - 1):
                await ends.broker_gets(HeartbeatRequest, 4)

    run(clock, test)


@pytest.mark.parametrize("count", [1, 2])
def test_a_connection_without_a_response_ends_with_the_client(count: int, clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", "no_response": True}) as ends:
            for _ in range(count):
                await ends.asks((HEARTBEAT, 4))
                await trio.sleep(1)
            await ends.client.send_eof()
            assert await ends.broker.receive_some(1) == b""
            assert trio.current_time() < 100

    run(clock, test)


def test_responses_keep_the_order_of_requests(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", "nth": 2, "error": "NOT_COORDINATOR"}) as ends:
            await ends.asks(*[(HEARTBEAT, 4)] * 3)
            await ends.broker_gets(HeartbeatRequest, 4)
            await gets_nothing(ends.client)
            await gets_nothing(ends.broker)
            await ends.broker_responds(BEATEN, 4, 1)
            await ends.broker_gets(HeartbeatRequest, 4)
            await ends.broker_responds(BEATEN, 4, 3)
            codes = [(await ends.client_gets(HeartbeatRequest, 4, number)).error_code for number in (1, 2, 3)]
            assert codes == [0, ErrorCode.NOT_COORDINATOR, 0]

    run(clock, test)


def test_a_broker_that_skips_a_request_does_not_stop_a_rule(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", "nth": 2, "error": "NOT_COORDINATOR"}) as ends:
            await ends.asks((HEARTBEAT, 4), (HEARTBEAT, 4))
            await ends.broker_gets(HeartbeatRequest, 4)
            await ends.broker_responds(BEATEN, 4, 2)  # to a request that it has not got
            assert (await ends.client_gets(HeartbeatRequest, 4, 2)).error_code == ErrorCode.NOT_COORDINATOR

    run(clock, test)


def test_a_response_is_sent_in_pieces(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", "chunk_bytes": 1, "chunk_interval_ms": 1_000}) as ends:
            await ends.asks((HEARTBEAT, 4))
            await ends.broker_gets(HeartbeatRequest, 4)
            await ends.broker_responds(BEATEN, 4)
            await ends.client_gets(HeartbeatRequest, 4)
            assert trio.current_time() >= len(response(BEATEN, 4)) - 1

    run(clock, test)


def test_half_a_response_ends_the_connection(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", "truncate_bytes": 6}) as ends:
            await ends.asks((HEARTBEAT, 4))
            await ends.broker_gets(HeartbeatRequest, 4)
            await ends.broker_responds(BEATEN, 4)
            assert await ends.client.receive_some(100) == response(BEATEN, 4)[:6]
            assert await ends.client.receive_some(1) == b""

    run(clock, test)


def test_throttled_clients_wait_behind_the_response(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", "throttle_ms": 9_000, "times": 1}) as ends:
            await ends.asks((HEARTBEAT, 4), (HEARTBEAT, 4))
            await ends.broker_gets(HeartbeatRequest, 4)
            await ends.broker_responds(BEATEN, 4)
            assert (await ends.client_gets(HeartbeatRequest, 4)).throttle_time_ms == 9_000
            assert trio.current_time() < 9
            await ends.broker_gets(HeartbeatRequest, 4)
            assert trio.current_time() >= 9

    run(clock, test)


def test_a_frozen_heartbeat_takes_no_effect(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Heartbeat", "freeze": True}) as ends:
            await ends.asks((HEARTBEAT, 4))
            assert (await ends.client_gets(HeartbeatRequest, 4)).error_code == 0
            await gets_nothing(ends.broker)

    run(clock, test)


def test_versions_are_capped_and_refused(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        served = (ApiVersion(api_key=1, min_version=4, max_version=17),)
        async with relaying(
            {"api": "ApiVersions", "error": "UNSUPPORTED_VERSION", "times": 1}, {"max_versions": {"Fetch": 11}}
        ) as ends:
            await ends.asks((ApiVersionsRequest(client_software_name="c", client_software_version="1"), 4))
            refused = await ends.client_gets(ApiVersionsRequest, 0)
            assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
            await ends.asks((ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3))
            await ends.broker_gets(ApiVersionsRequest, 3)
            await ends.broker_responds(ApiVersionsResponse(error_code=0, api_keys=served), 3)
            (row,) = (await ends.client_gets(ApiVersionsRequest, 3)).api_keys
            assert row.max_version == 11
            assert ends.errors == ()

    run(clock, test)


def test_a_version_that_is_refused_after_the_request_gets_one_response(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying(
            {"api": "ApiVersions", "error": "UNSUPPORTED_VERSION", "when": "after", "times": 1}
        ) as ends:
            await ends.asks((ApiVersionsRequest(client_software_name="c", client_software_version="1"), 4))
            await ends.broker_gets(ApiVersionsRequest, 4)
            await gets_nothing(ends.client)
            await ends.broker_responds(ApiVersionsResponse(error_code=0, api_keys=()), 4)
            assert (await ends.client_gets(ApiVersionsRequest, 0)).error_code == ErrorCode.UNSUPPORTED_VERSION
            await gets_nothing(ends.client)

    run(clock, test)


def test_addresses_are_replaced_in_a_changed_response_too(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Metadata", "unknown_tags": True}) as ends:
            await ends.asks((MetadataRequest(topics=()), 9))
            await ends.broker_gets(MetadataRequest, 9)
            broker = MetadataResponseBroker(node_id=1, host="b", port=9092)
            await ends.broker_responds(MetadataResponse(brokers=(broker,), topics=()), 9)
            found = await ends.client_gets(MetadataRequest, 9)
            assert found.unknown_tagged_fields
            assert found.brokers[0].host == OWN_HOST

    run(clock, test)


def fetch(version: int, session_id: int, epoch: int, *partitions: int) -> tuple[FetchRequest, int]:
    topic = FetchTopic(
        topic="orders" if version < 13 else "",
        topic_id=TOPIC_ID if version >= 13 else bytes(16),
        partitions=tuple(
            FetchPartition(partition=one, fetch_offset=0, partition_max_bytes=100) for one in partitions
        ),
    )  # fmt: skip
    topics = (topic,) if partitions else ()
    return FetchRequest(
        max_wait_ms=500, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=topics
    ), version


def test_clients_fetch_without_sessions_while_a_rule_is_about_partitions(clock: trio.testing.MockClock) -> None:
    """The session began before the rule: neither the proxy nor the request knows its partitions."""

    async def test() -> None:
        rule = {"api": "Fetch", "topic": "orders", "partition": 0, "error": "NOT_LEADER_OR_FOLLOWER"}
        async with relaying(rule) as ends:
            await ends.asks(fetch(12, 77, 3))
            evicted = await ends.client_gets(FetchRequest, 12)
            assert evicted.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            await ends.asks(fetch(12, 0, 0, 0, 1))
            sent = await ends.broker_gets(FetchRequest, 12)
            assert (sent.session_id, sent.session_epoch) == (0, -1)
            assert sent.max_wait_ms == 0  # a broker does not wait for records beside an error
            await ends.broker_responds(FetchResponse(responses=()), 12)
            (topic,) = (await ends.client_gets(FetchRequest, 12)).responses
            found = [(one.partition_index, one.error_code) for one in topic.partitions]
            assert found == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)]

    run(clock, test)


def test_sessions_stay_if_no_rule_is_about_partitions(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Fetch", "delay_ms": 100}) as ends:
            await ends.asks(fetch(12, 77, 3))
            assert (await ends.broker_gets(FetchRequest, 12)).session_id == 77

    run(clock, test)


def test_an_error_of_a_share_fetch_stands_in_the_response_itself(clock: trio.testing.MockClock) -> None:
    """The proxy does not know the partitions of share sessions, and the cluster must not deliver the records."""
    request = ShareFetchRequest(
        group_id="g", member_id="m", share_session_epoch=1, max_wait_ms=500, min_bytes=1, max_records=9, batch_size=9,
        topics=(), forgotten_topics_data=(),
    )  # fmt: skip

    async def test() -> None:
        async with relaying({"api": "ShareFetch", "error": "NOT_LEADER_OR_FOLLOWER", "times": 1}) as ends:
            await ends.asks((request, 1))
            found = await ends.client_gets(ShareFetchRequest, 1)
            assert (found.error_code, found.responses) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, ())
            await ends.asks((request, 1))
            assert await ends.broker_gets(ShareFetchRequest, 1) == request

    run(clock, test)


def test_topics_by_id_have_the_name_that_metadata_gave(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Fetch", "topic": "orders", "close": True}) as ends:
            await ends.asks(fetch(13, 0, -1, 0))
            await ends.broker_gets(FetchRequest, 13)  # the name is not known yet
            await ends.broker_responds(FetchResponse(responses=()), 13)
            await ends.client_gets(FetchRequest, 13)
            await ends.asks((MetadataRequest(topics=None), 12))
            await ends.broker_gets(MetadataRequest, 12)
            partition = MetadataResponsePartition(
                error_code=0, partition_index=0, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)
            )  # fmt: skip
            topic = MetadataResponseTopic(error_code=0, name="orders", topic_id=TOPIC_ID, partitions=(partition,))
            await ends.broker_responds(MetadataResponse(brokers=(), topics=(topic,)), 12)
            await ends.client_gets(MetadataRequest, 12)
            await ends.asks(fetch(13, 0, -1, 0))
            assert await ends.client.receive_some(1) == b""

    run(clock, test)


def test_the_names_of_few_topics_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "TOPIC_NAMES_MAX", 2)
    rules = rules_at(int)
    for number in range(4):
        topic = MetadataResponseTopic(error_code=0, name=f"t{number}", topic_id=bytes([number]) * 16, partitions=())
        rules.learn(MetadataResponse(brokers=(), topics=(topic,)))
    assert [*rules.topic_names.values()] == ["t2", "t3"]


def test_the_names_of_all_topics_up_to_the_limit_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "TOPIC_NAMES_MAX", 10)
    rules = rules_at(int)
    topics = tuple(
        MetadataResponseTopic(error_code=0, name=f"t{number}", topic_id=bytes([number]) * 16, partitions=())
        for number in range(8)
    )
    for _ in range(2):
        rules.learn(MetadataResponse(brokers=(), topics=topics))
    assert len(rules.topic_names) == 8


def test_a_request_that_a_rule_is_about_is_collected(clock: trio.testing.MockClock) -> None:
    """Another request of this size passes in parts as it arrives."""

    async def test() -> None:
        async with relaying({"api": "Produce", "close": True}) as ends:
            large = PartitionProduceData(index=0, records=bytes(2 * BEGINNING_BYTES))
            topic = TopicProduceData(name="orders", partition_data=(large,))
            await ends.asks((ProduceRequest(acks=1, timeout_ms=1, topic_data=(topic,)), 9))
            assert await ends.client.receive_some(1) == b""
            assert await ends.broker.receive_some(1) == b""

    run(clock, test)


def test_rules_act_on_requests_with_more_elements_than_brokers_of_kproto_accept(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying({"api": "Metadata", "close": True}) as ends:
            topics = tuple(MetadataRequestTopic(name=f"t{number}") for number in range(20_000))
            await ends.asks((MetadataRequest(topics=topics), 9))
            assert await ends.client.receive_some(1) == b""
            assert await ends.broker.receive_some(1) == b""

    run(clock, test)


def test_rules_come_and_go_while_connections_are_open(clock: trio.testing.MockClock) -> None:
    async def test() -> None:
        async with relaying() as ends:
            rule = ends.rules.add({"client_id": "app", "error": "NOT_COORDINATOR", "api": "Heartbeat"})
            await ends.asks((HEARTBEAT, 4))
            await ends.client_gets(HeartbeatRequest, 4)
            ends.rules.remove(rule)
            await ends.asks((HEARTBEAT, 4))
            await ends.broker_gets(HeartbeatRequest, 4)
            assert (rule.matched, rule.fired) == (1, 1)

    run(clock, test)


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ({"node_id": 1, "close": True}, "node_id has no meaning in a proxy: the proxy does not know the nodes"),
        ({"stale": True}, "stale has no meaning in a proxy: "),
        ({"leader": 2}, "leader has no meaning in a proxy: "),
        ({"coordinator": 2}, "coordinator has no meaning in a proxy: "),
        ({"network": {"latency_ms": 1}}, "network has no meaning in a proxy: use delay_ms and chunk_bytes"),
        ({"forward_commits": True}, "forward_commits has no meaning in a proxy: the cluster handles the commits"),
        ({"conditional_commits": True}, "conditional_commits has no meaning in a proxy: "),
        ({"api": "Heartbeat", "topic": "t", "close": True}, "Heartbeat has no topic: its filters are "),
        ({"api": "Heartbeat", "versions": 9, "close": True}, "Kafka version 4.4 serves Heartbeat in versions 0 to 4"),
    ],
)
def test_rules_without_a_meaning_are_refused_by_name(rule: dict[str, Any], error: str) -> None:
    rules = rules_at(int)
    with pytest.raises(UsageError) as refused:
        rules.add(rule)
    assert str(refused.value).startswith(error)
    assert rules.is_idle
