"""Idempotent producers, open transactions and share groups of a snapshot.

Method: as in `test_clients`, and raw clients where a library hides what the broker responds.
"""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto_server import Broker
from kproto_server.state import BrokerState
from tests.broker.test_reset import produce as produce_batch
from tests.network.raw_client import RawClient
from tests.network.requests import create_topic
from tests.snapshots.test_clients import GROUP, broker, config, create, produce, read  # noqa: F401 - a fixture
from tests.waiting import LIMIT_S, wait_until


def new_producer(client: RawClient) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    return int(client.ask(request, 0).producer_id)


def test_an_idempotent_producer_goes_on(broker: Broker) -> None:  # noqa: F811
    with RawClient(broker.bootstrap_servers) as client:
        create_topic(client)
        old = new_producer(client)
        assert [produce_batch(client, old, number) for number in range(2)] == [0, 0]
        snapshot = broker.snapshot()
        assert produce_batch(client, old, 2) == 0
        new = new_producer(client)
        assert produce_batch(client, new, 0) == 0
    broker.restore(snapshot)
    with RawClient(broker.bootstrap_servers) as client:
        assert produce_batch(client, new, 1) == ErrorCode.UNKNOWN_PRODUCER_ID, "it is younger than the snapshot"
        assert produce_batch(client, old, 1) == 0, "a duplicate"
        assert produce_batch(client, old, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce_batch(client, old, 2) == 0
        assert new_producer(client) not in (old, new)
    assert broker.groups.lag(GROUP) == {}
    assert broker.run(lambda server: server.state.cluster.topics["t"].partitions[0].high_watermark) == 3


def test_an_open_transaction_is_open_again(broker: Broker) -> None:  # noqa: F811
    create(broker, "orders")
    produce(broker, "a")
    consumer = Consumer(config(broker, group_id=GROUP))
    metadata = consumer.consumer_group_metadata()
    for commits in (True, False):
        producer = Producer(config(broker, transactional_id="tx"))
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        producer.produce("orders", "b", partition=0)
        assert producer.flush(LIMIT_S) == 0
        producer.send_offsets_to_transaction([TopicPartition("orders", 0, 7)], metadata, LIMIT_S)
        snapshot = broker.snapshot()
        producer.commit_transaction(LIMIT_S)
        assert [value for _, _, value in read(broker)] == [b"a", b"b"]
        assert broker.groups.committed(GROUP) == {("orders", 0): 7}
        broker.restore(snapshot)
        assert broker.groups.committed(GROUP) == {}
        assert stable_offset(broker) == 1
        if commits:
            end_transaction(broker, commits=True)
            assert stable_offset(broker) == 3
            assert broker.groups.committed(GROUP) == {("orders", 0): 7}
            broker.restore(snapshot)
        Producer(config(broker, transactional_id="tx")).init_transactions(LIMIT_S)  # aborts it
        assert stable_offset(broker) == 3
        assert broker.groups.committed(GROUP) == {}
        del producer  # ends: its request for metadata would create the topic again
        broker.reset()
        create(broker, "orders")
        produce(broker, "a")
    consumer.close()


def stable_offset(broker: Broker) -> int:  # noqa: F811
    data = broker.run(lambda server: server.state.cluster.topics["orders"].partitions[0].data)
    return data.last_stable_offset


def end_transaction(broker: Broker, *, commits: bool) -> None:  # noqa: F811
    from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
    from kproto.messages.k26_end_txn import EndTxnRequest

    values = broker.run(lambda server: server.state.transactions.transactions["tx"].values)
    with RawClient(broker.bootstrap_servers) as client:
        client.ask(FindCoordinatorRequest(key="tx", key_type=1), 1)
        request = EndTxnRequest(
            transactional_id="tx", producer_id=values.producer_id, producer_epoch=values.epoch, committed=commits
        )
        assert client.ask(request, 3).error_code == 0


def test_a_share_group_goes_on_after_what_it_was_done_with(broker: Broker) -> None:  # noqa: F811
    create(broker, "orders")
    seen: list[Any] = []

    def consume(count: int) -> None:
        others: dict[str, Any] = {"share_acknowledgement_mode": "explicit", "group_id": "sharers"}
        consumer = ShareConsumer(config(broker, **others))
        consumer.subscribe(["orders"])

        def is_done() -> bool:
            has_begun = bool(broker.groups.start_offsets("sharers"))
            if not has_begun:  # the group reads what is written from now on
                produce(broker, "begin")
            for message in consumer.poll(0.1):
                if message.error() is None:
                    consumer.acknowledge(message)
                    seen.append(message.value())
            consumer.commit_sync()
            return has_begun and len([one for one in seen if one != b"begin"]) >= count

        wait_until(is_done, f"{count} records")
        consumer.close()

    consume(0)
    produce(broker, "a", "b")
    consume(2)
    snapshot = broker.snapshot()
    before = broker.groups.start_offsets("sharers")
    produce(broker, "c")
    consume(3)
    broker.restore(snapshot)
    assert broker.groups.start_offsets("sharers") == before
    assert broker.groups.state("sharers") == "Empty"
    seen.clear()
    produce(broker, "d")
    consume(1)
    assert [one for one in seen if one != b"begin"] == [b"d"]


@pytest.mark.parametrize("what", ["groups", "transactions", "share groups"])
def test_no_snapshot_is_taken_of_what_is_being_loaded(broker: Broker, what: str) -> None:  # noqa: F811
    def unavailable(state: BrokerState) -> dict[int, int]:
        if what == "groups":
            return state.coordinator.unavailable
        return state.transactions.log.unavailable if what == "transactions" else state.share_groups.store.unavailable

    broker.run(lambda server: unavailable(server.state).update({0: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}))
    with pytest.raises(UsageError, match=f"^{what} are still being loaded"):
        broker.snapshot()
    broker.run(lambda server: unavailable(server.state).clear())
    broker.snapshot()
