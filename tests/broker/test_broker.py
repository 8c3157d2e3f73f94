"""A broker inside a user's process: calls from blocking code, trio, asyncio and threads; options, nodes and clock."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.to_thread
import pytest
import trio
import trio.testing

from kproto.errors import UsageError
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto_server.broker.broker import Broker
from kproto_server.clock import ClockMode
from kproto_server.configuration.settings import SettingError, Settings
from kproto_server.network.listening import CannotListen
from kproto_server.releases.kafka_version import KafkaVersion
from tests.network.raw_client import RawClient
from tests.network.requests import ALL_TOPICS, commit_offset, committed, create_topic, long_poll, topic_names
from tests.waiting import wait_until

MINUTE_MS = 60_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running() as running:
        yield running


# Kinds of calling code.


def test_blocking_code_commits_and_fetches_offsets(broker: Broker) -> None:
    with RawClient(broker.bootstrap_servers) as client:
        assert commit_offset(client) == 0
        assert committed(client) == 7


async def _use_from_async_code() -> None:
    async with Broker(brokers=3) as broker:
        assert len(broker.bootstrap_servers.split(",")) == 3
        stream = await anyio.connect_tcp("127.0.0.1", int(broker.bootstrap_servers.split(",")[0].rpartition(":")[2]))
        async with stream:
            await stream.send(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))  # ApiVersions v0
            assert (await stream.receive())[4:10] == bytes.fromhex("00000001 0000")


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_trio_and_asyncio_code_run_a_broker(backend: str) -> None:
    anyio.run(_use_from_async_code, backend=backend)


@pytest.mark.trio
async def test_a_blocking_client_in_a_trio_test_does_not_stop_the_broker() -> None:
    async with Broker() as broker:
        with RawClient(broker.bootstrap_servers) as client:
            assert topic_names(client) == set()


@pytest.mark.trio
async def test_a_trio_tests_virtual_clock_does_not_stop_the_broker(autojump_clock: trio.testing.MockClock) -> None:
    async with Broker() as broker:
        await trio.sleep(86_400)
        with RawClient(broker.bootstrap_servers) as client:
            assert topic_names(client) == set()


def test_several_threads_use_one_broker_at_once(broker: Broker) -> None:
    failures: list[BaseException] = []

    def use(number: int) -> None:
        try:
            with RawClient(broker.bootstrap_servers) as client:
                for offset in range(20):
                    assert commit_offset(client, f"group-{number}", offset) == 0
                    assert committed(client, f"group-{number}") == offset
                    broker.clock.advance(milliseconds=1)
                    broker.snapshot()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    with RawClient(broker.bootstrap_servers) as client:
        assert {group.group_id for group in client.ask(ListGroupsRequest(), 0).groups} == {
            f"group-{number}" for number in range(6)
        }


# Options.


def test_kafka_version_settings_and_clock_may_be_text_or_objects() -> None:
    kafka_version = KafkaVersion.named("2.0")
    settings = Settings.from_mapping({"offsets.topic.num.partitions": "4"}, kafka_version)
    by_objects = Broker(kafka_version=kafka_version, settings=settings, clock=ClockMode(rate=0.0))
    by_text = Broker(kafka_version="2.0", settings={"offsets.topic.num.partitions": 4}, clock="manual")

    for broker in (by_objects, by_text):
        with broker, RawClient(broker.bootstrap_servers) as client:
            client.ask(FindCoordinatorRequest(key="g"), 0)
            assert [len(topic.partitions) for topic in client.ask(ALL_TOPICS, 1).topics] == [4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kafka_version": "7.7"}, "no Kafka release '7.7'"),
        ({"settings": {"offsets.retention.minuets": 1}}, "did you mean offsets.retention.minutes"),
        ({"clock": "slow"}, "use real, manual, auto, or scaled:N"),
        ({"brokers": 0}, "at least one node"),
        ({"brokers": 2, "started": 3}, "1 to 2 can be started"),
        ({"brokers": 2, "started": 0}, "1 to 2 can be started"),
    ],
)
def test_impossible_options_are_refused_before_the_start(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Broker(**options)  # type: ignore[arg-type]  # the values have several types


def test_an_unknown_setting_is_a_setting_error() -> None:
    with pytest.raises(SettingError):
        Broker(settings={"no.such.setting": 1})


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_an_ipv6_address_has_brackets() -> None:
    try:
        with Broker(host="::1") as broker, RawClient(broker.bootstrap_servers) as client:
            assert broker.bootstrap_servers.startswith("[::1]:")
            assert client.ask(ALL_TOPICS, 1).brokers[0].host == "::1"
    except CannotListen:
        pytest.skip("needs an IPv6 loopback address")


# Nodes.


def test_a_stopped_node_closes_its_connections_and_refuses_new_ones() -> None:
    with Broker(brokers=2) as broker:
        first, second = broker.bootstrap_servers.split(",")
        with RawClient(first) as open_client, RawClient(second) as closed_client:
            topic_names(closed_client)
            broker.stop_node(2)
            closed_client.wait_closed()
            with pytest.raises(ConnectionRefusedError):
                RawClient(second)
            assert [node.node_id for node in open_client.ask(ALL_TOPICS, 1).brokers] == [1]

            broker.start_node(2)
            with RawClient(second) as again:
                assert [node.node_id for node in again.ask(ALL_TOPICS, 1).brokers] == [1, 2]
            assert broker.bootstrap_servers == f"{first},{second}", "a node keeps its address"


def test_nodes_that_are_not_started_have_addresses() -> None:
    with Broker(brokers=3, started=1) as broker:
        addresses = broker.bootstrap_servers.split(",")
        assert len(set(addresses)) == 3
        with RawClient(addresses[0]) as client:
            for node_id in (2, 3):
                with pytest.raises(ConnectionRefusedError):
                    RawClient(addresses[node_id - 1])
                broker.start_node(node_id)
                with RawClient(addresses[node_id - 1]) as other:
                    assert topic_names(other) == set()
                assert len(client.ask(ALL_TOPICS, 1).brokers) == node_id


def test_a_node_can_be_stopped_right_after_its_start() -> None:
    with Broker(brokers=2) as broker:
        for _ in range(20):
            broker.stop_node(2)
            broker.start_node(2)
        with RawClient(broker.bootstrap_servers.split(",")[1]) as client:
            assert topic_names(client) == set()


@pytest.mark.parametrize("node_id", [0, 2, 7, -1, "1", None])
def test_a_node_that_does_not_exist_is_an_error_that_names_all_nodes(broker: Broker, node_id: Any) -> None:
    expected = re.escape(f"node {node_id!r} does not exist: node 1 is running")
    for refused in (broker.start_node, broker.stop_node):
        with pytest.raises(UsageError, match=f"^{expected}$"):
            refused(node_id)
    broker.start_node(1)  # does nothing: the node is up
    with RawClient(broker.bootstrap_servers) as client:
        assert topic_names(client) == set()


def test_stopping_a_stopped_node_is_an_error_that_names_all_nodes() -> None:
    with Broker(brokers=3, started=2) as broker:
        broker.stop_node(2)
        for node_id in (2, 3):
            text = f"^node {node_id} is stopped already: node 1 is running, node 2 is stopped, node 3 is stopped$"
            with pytest.raises(UsageError, match=text):
                broker.stop_node(node_id)


# Clock.


def test_advance_moves_a_manual_clock() -> None:
    """D7."""
    with Broker(clock="manual") as broker:
        before = broker.clock.now_ms()
        broker.clock.advance(days=1, hours=1, minutes=1, seconds=1, milliseconds=1)
        assert broker.clock.now_ms() == before + (((24 + 1) * 60 + 1) * 60 + 1) * 1000 + 1
        with pytest.raises(ValueError, match="can't go back"):
            broker.clock.advance(milliseconds=-1)


def test_a_real_clock_starts_at_the_wall_clocks_time(broker: Broker) -> None:
    assert abs(broker.clock.now_ms() - time.time() * 1000) < MINUTE_MS


def test_a_manual_clock_does_not_delay_real_clients() -> None:
    """A client's long poll ends when its wait is over in real time (D7, BA-71)."""
    with Broker(clock="manual") as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client)
        response = client.ask(long_poll(100), 4)
        assert response.responses[0].partitions[0].error_code == 0


def test_advancing_the_clock_ends_a_long_poll() -> None:
    """The client waits for ten minutes of broker time, which take no real time (D7)."""
    with Broker(clock="manual") as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client)
        client.send((long_poll(10 * MINUTE_MS), 4))
        wait_until(lambda: broker.observations.snapshot().clients[0].requests[0].api_key == 1, "the poll")
        broker.clock.advance(minutes=11)
        assert client.read_ids(1) == [2]


def test_a_snapshot_of_observations_is_a_copy(broker: Broker) -> None:
    with RawClient(broker.bootstrap_servers, client_id="app") as client:
        topic_names(client)
        before = broker.observations.snapshot()
        topic_names(client)
        after = broker.observations.snapshot()
    assert [seen.count for seen in before.clients[0].requests] == [1]
    assert [seen.count for seen in after.clients[0].requests] == [2]
    assert after.clients[0].client_id == "app"
