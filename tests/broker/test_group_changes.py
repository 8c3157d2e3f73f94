"""`Broker.groups` changes offsets and disturbs groups, and real clients see the effect."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, TopicPartition

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto_server import Broker
from kproto_server.broker.own_requests import RequestRefused
from tests.waiting import LIMIT_S

if TYPE_CHECKING:
    from collections.abc import Iterator

CLASSIC: dict[str, Any] = {"heartbeat.interval.ms": 100}
CONSUMER: dict[str, Any] = {"group.protocol": "consumer"}
SETTINGS = {
    "num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
    "group.share.min.heartbeat.interval.ms": 100,
}


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker.running(clock="manual", settings=SETTINGS) as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Broker:
    running.reset(new_ports=True)
    running.topics.create("orders")
    return running


@contextmanager
def consuming(broker: Broker, *client_ids: str, **settings: Any) -> Iterator[None]:
    """Run consumers of one group, each in a thread of its own."""
    ended = threading.Event()

    def consume(client_id: str) -> None:
        config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "client.id": client_id}
        with closing(Consumer({**config, "auto.offset.reset": "earliest", **settings})) as consumer:
            consumer.subscribe(["orders"])
            while not ended.is_set():
                consumer.poll(0.02)

    with ThreadPoolExecutor() as threads:
        done = [threads.submit(consume, client_id) for client_id in client_ids]
        try:
            yield
        finally:
            ended.set()
            broker.groups.release_rebalance("billing")
            for one in done:
                one.result(LIMIT_S)


# Offsets.


def test_a_consumer_begins_at_the_offset_that_a_test_has_committed(broker: Broker) -> None:
    broker.topics.produce("orders", records=["a", "b", "c"], partition=0)
    broker.groups.commit("billing", {("orders", 0): 2, ("orders", 1): 0}, metadata="seed")
    assert broker.groups.committed("billing") == {("orders", 0): 2, ("orders", 1): 0}
    stored = broker.run(lambda server: server.state.coordinator.offsets.of_group("billing"))
    assert stored["orders"][0].metadata == "seed"
    config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "enable.auto.commit": False}
    with closing(Consumer(config)) as consumer:
        (found,) = consumer.committed([TopicPartition("orders", 0)], LIMIT_S)
        assert found.offset == 2
        consumer.assign([TopicPartition("orders", 0)])
        record = consumer.poll(LIMIT_S)
        assert record is not None
        assert record.value() == b"c"
    broker.groups.delete("billing")
    assert broker.groups.list() == ()


def test_offsets_are_refused_as_by_a_real_broker(broker: Broker) -> None:
    with pytest.raises(RequestRefused, match=r"group 'billing', orders-9: UNKNOWN_TOPIC_OR_PARTITION"):
        broker.groups.commit("billing", {("orders", 9): 0})
    with pytest.raises(UsageError, match="the offset of orders-0 is a number from 0 on, not -1"):
        broker.groups.commit("billing", {("orders", 0): -1})
    with consuming(broker, "one", **CLASSIC):
        broker.groups.wait_stable("billing", members=1, partitions=4)
        with pytest.raises(RequestRefused, match="the group has 1 members, and only they may commit") as refused:
            broker.groups.commit("billing", {("orders", 0): 0})
        assert refused.value.error == ErrorCode.UNKNOWN_MEMBER_ID
        with pytest.raises(RequestRefused, match="NON_EMPTY_GROUP"):
            broker.groups.delete("billing")


def test_a_commit_waits_for_a_coordinator_that_loads() -> None:
    with Broker.running(brokers=2, clock="scaled:10", settings={"offsets.topic.replication.factor": 2}) as broker:
        broker.topics.create("orders")
        broker.groups.commit("billing", {("orders", 0): 1})
        broker.cluster.move_coordinator(group="billing", loading_ms=500)
        broker.groups.commit("billing", {("orders", 0): 2})
        assert broker.groups.committed("billing") == {("orders", 0): 2}


def test_share_groups_have_start_offsets_instead(broker: Broker) -> None:
    broker.groups.set_start_offsets("workers", {("orders", 0): 0})
    assert broker.groups.start_offsets("workers") == {("orders", 0): 0}
    with pytest.raises(RequestRefused, match="a share group commits no offsets: set its start offsets"):
        broker.groups.commit("workers", {("orders", 0): 0})
    with pytest.raises(UsageError, match="group 'workers' is a share group, which commits no offsets: use wait_lag"):
        broker.groups.wait_committed("workers", {("orders", 0): 0}, timeout_s=LIMIT_S)
    broker.topics.produce("orders", "a", partition=0)
    with pytest.raises(TimeoutError, match="group 'workers' has the lag orders-0: 1, not 0"):
        broker.groups.wait_lag("workers", timeout_s=0.0)


# Waits.


def test_a_test_waits_for_commits_and_lag(broker: Broker) -> None:
    broker.topics.produce("orders", records=["a", "b", "c", "d", "e"])
    with consuming(broker, "one", **{"auto.commit.interval.ms": 50}, **CLASSIC):
        broker.groups.wait_lag("billing", topic="orders", timeout_s=LIMIT_S)
        assert broker.groups.wait_committed("billing", {("orders", 0): 2, ("orders", 3): 1})["orders", 1] == 1
        with pytest.raises(TimeoutError, match="group 'billing' has committed orders-0: 2, not orders-0: 9"):
            broker.groups.wait_committed("billing", {("orders", 0): 9, ("orders", 3): 1}, timeout_s=0.0)
        with pytest.raises(TimeoutError, match=r"group 'billing' is Stable with 1 members \(one\), not Empty"):
            broker.groups.wait_empty("billing", timeout_s=0.0)
    broker.groups.wait_empty("billing", timeout_s=LIMIT_S)
    with pytest.raises(TimeoutError, match=r"has the lag orders-0: no offset, orders-1: no offset.*, not 0"):
        broker.groups.wait_lag("other", topic="orders", timeout_s=0.0)


def test_counts_below_0_are_refused_at_once(broker: Broker) -> None:
    for name in ("members", "partitions"):
        with pytest.raises(UsageError, match=f"{name} is a number from 0 on, not -1"):
            broker.groups.wait_stable("billing", **{name: -1}, timeout_s=LIMIT_S)


def test_a_coroutine_waits_while_its_consumer_runs(broker: Broker) -> None:
    async def main() -> None:
        async with AIOKafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap_servers, group_id="billing", auto_commit_interval_ms=50,
            auto_offset_reset="earliest",
        ) as consumer:  # fmt: skip
            await broker.groups.wait_stable_async("billing", members=1, partitions=4, timeout_s=LIMIT_S)
            broker.topics.produce("orders", "a", partition=0)
            assert (await consumer.getone()).value == b"a"
            await broker.groups.wait_committed_async("billing", {("orders", 0): 1}, timeout_s=LIMIT_S)
            lags = await broker.groups.wait_lag_async("billing", timeout_s=LIMIT_S)
            assert lags == {("orders", index): 0 for index in range(4)}
        await broker.groups.wait_empty_async("billing", timeout_s=LIMIT_S)

    asyncio.run(main())


# Rebalances.


@pytest.mark.parametrize(("at", "state"), [("join", "PreparingRebalance"), ("sync", "CompletingRebalance")])
def test_a_rebalance_is_held_until_it_is_released(broker: Broker, at: Any, state: str) -> None:
    hold = broker.groups.hold_rebalance("billing", at)
    with consuming(broker, "one", "two", **CLASSIC):
        broker.groups.wait_held("billing", members=2, timeout_s=LIMIT_S)
        broker.clock.advance(seconds=30)
        assert broker.groups.state("billing") == state
        assert all(member.partitions == () for member in broker.groups.members("billing"))
        hold.release()
        broker.groups.wait_stable("billing", members=2, partitions=4, timeout_s=LIMIT_S)


def test_a_held_rebalance_goes_on_at_the_end_of_a_block(broker: Broker) -> None:
    with consuming(broker, "one", **CLASSIC):
        broker.groups.wait_stable("billing", members=1, partitions=4)
        with broker.groups.hold_rebalance("billing"):
            broker.groups.force_rebalance("billing")
            broker.groups.wait_state("billing", "PreparingRebalance", timeout_s=LIMIT_S)
        broker.groups.wait_stable("billing", members=1, partitions=4, timeout_s=LIMIT_S)
        assert [one.generation for one in broker.groups.list()] == [2]


@pytest.mark.parametrize("settings", [CLASSIC, CONSUMER], ids=["classic", "consumer"])
def test_a_forced_rebalance_ends_in_a_new_generation(broker: Broker, settings: dict[str, Any]) -> None:
    with consuming(broker, "one", "two", **settings):
        broker.groups.wait_stable("billing", members=2, partitions=4, timeout_s=LIMIT_S)
        (before,) = broker.groups.list()
        broker.groups.force_rebalance("billing")
        broker.groups.wait_stable("billing", members=2, partitions=4, timeout_s=LIMIT_S)
        (after,) = broker.groups.list()
        assert after == before._replace(generation=before.generation + 1)
        assert after.kind == ("consumer" if settings is CONSUMER else "classic")


@pytest.mark.parametrize("settings", [CLASSIC, CONSUMER], ids=["classic", "consumer"])
def test_an_expired_member_joins_again(broker: Broker, settings: dict[str, Any]) -> None:
    with consuming(broker, "one", "two", **settings):
        broker.groups.wait_stable("billing", members=2, partitions=4, timeout_s=LIMIT_S)
        before = {one.client_id: one.member_id for one in broker.groups.members("billing")}
        assert broker.groups.expire_member("billing", client_id="one") == before["one"]
        error = "UNKNOWN_MEMBER_ID"
        broker.requests.wait(error=error, client_id="one", timeout_s=LIMIT_S)
        broker.groups.wait_stable("billing", members=2, partitions=4, timeout_s=LIMIT_S)
        with pytest.raises(RequestRefused, match=r"there is no member of client 'three'; the group has .*'two'"):
            broker.groups.expire_member("billing", client_id="three")


@pytest.mark.parametrize("settings", [CLASSIC, CONSUMER], ids=["classic", "consumer"])
def test_a_client_with_frozen_heartbeats_expires_and_does_not_know_it(broker: Broker, settings: dict[str, Any]) -> None:
    with consuming(broker, "one", "two", **{"enable.auto.commit": False}, **settings):
        broker.groups.wait_stable("billing", members=2, partitions=4, timeout_s=LIMIT_S)
        with broker.groups.freeze_heartbeats("billing", client_id="one") as frozen:
            for _ in range(2):  # the session timeout is 45 s
                broker.clock.advance(seconds=30)
                wait_for_heartbeats(broker, "two")
            frozen.wait_fired(frozen.fired + 2, timeout_s=LIMIT_S)
            broker.groups.wait_stable("billing", members=1, partitions=4, timeout_s=LIMIT_S)
            assert [one.client_id for one in broker.groups.members("billing")] == ["two"]
            assert broker.requests.where(client_id="one", error="UNKNOWN_MEMBER_ID") == ()
        broker.requests.wait(client_id="one", error="UNKNOWN_MEMBER_ID", timeout_s=LIMIT_S)
        broker.groups.wait_stable("billing", members=2, partitions=4, timeout_s=LIMIT_S)


def test_a_classic_member_of_a_consumer_group_is_frozen_and_expires(broker: Broker) -> None:
    with consuming(broker, "one", **CLASSIC):
        broker.groups.wait_stable("billing", members=1, partitions=4, timeout_s=LIMIT_S)
        with consuming(broker, "two", **CONSUMER):
            broker.groups.wait_stable("billing", members=2, partitions=4, timeout_s=LIMIT_S)
            with broker.groups.freeze_heartbeats("billing", client_id="one") as frozen:
                frozen.wait_fired(timeout_s=LIMIT_S)
                assert frozen.given["api"] == "Heartbeat"
                broker.groups.expire_member("billing", client_id="one")
                broker.groups.wait_stable("billing", members=1, partitions=4, timeout_s=LIMIT_S)
            broker.groups.wait_stable("billing", members=2, partitions=4, timeout_s=LIMIT_S)


def wait_for_heartbeats(broker: Broker, client_id: str) -> None:
    """Wait for two more heartbeats of a client: the second one was sent after this call."""
    apis = ("Heartbeat", "ConsumerGroupHeartbeat")

    def count() -> int:
        return sum(len(broker.requests.where(api=api, client_id=client_id)) for api in apis)

    kind = broker.groups.list()[0].kind
    broker.requests.wait(api=apis[kind == "consumer"], client_id=client_id, count=count() + 2, timeout_s=LIMIT_S)


def test_a_coroutine_holds_a_rebalance(broker: Broker) -> None:
    async def main() -> None:
        settings = {"bootstrap_servers": broker.bootstrap_servers, "group_id": "billing"}
        async with broker.groups.hold_rebalance("billing"):
            starting = asyncio.create_task(AIOKafkaConsumer("orders", **settings).__aenter__())
            await broker.groups.wait_held_async("billing", members=1, timeout_s=LIMIT_S)
            assert not starting.done()
            with pytest.raises(TimeoutError, match="group 'billing' is held with 1 members, not held with 2 members"):
                await broker.groups.wait_held_async("billing", members=2, timeout_s=0.0)
        await broker.groups.wait_stable_async("billing", partitions=4, timeout_s=LIMIT_S)
        await (await starting).stop()
        with pytest.raises(UsageError, match="rebalances of group 'billing' are not held: begin with hold_rebalance"):
            await broker.groups.wait_held_async("billing")

    asyncio.run(main())


def test_what_does_not_apply_is_refused_with_a_reason(broker: Broker) -> None:
    with pytest.raises(RequestRefused, match="group 'billing': GROUP_ID_NOT_FOUND: there is no such group"):
        broker.groups.force_rebalance("billing")
    broker.groups.commit("billing", {("orders", 0): 0})
    with pytest.raises(UsageError, match="group 'billing' has no members that could rebalance"):
        broker.groups.force_rebalance("billing")
    with pytest.raises(UsageError, match="name one member, by member_id or by client_id"):
        broker.groups.expire_member("billing")
    with pytest.raises(UsageError, match="at is join or sync, not 'leave'"):
        broker.groups.hold_rebalance("billing", "leave")  # type: ignore[arg-type]  # the error
    broker.groups.set_start_offsets("workers", {("orders", 0): 0})
    with pytest.raises(UsageError, match="group 'workers' is a share group, whose members reconcile one by one"):
        broker.groups.hold_rebalance("workers")
