from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from kafka import KafkaConsumer, TopicPartition

from kproto_server import Broker


def consumer(broker: Broker, name: str) -> KafkaConsumer:
    return KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="billing",
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=100,  # how soon it hears of a rebalance
    )


def owners(broker: Broker) -> dict[str, list[int]]:
    return {member.client_id: [index for _, index in member.partitions] for member in broker.groups.members("billing")}


def test_an_order_that_bob_hangs_on_goes_to_alice(kafka_broker: Broker) -> None:
    kafka_broker.topics.create("orders", partitions=4)
    with (
        ThreadPoolExecutor() as threads,
        closing(consumer(kafka_broker, "alice")) as alice,
        closing(consumer(kafka_broker, "bob")) as bob,
    ):
        to_alice, to_bob = threads.submit(alice.poll, 10_000), threads.submit(bob.poll, 10_000)
        kafka_broker.groups.wait_stable("billing", members=2, partitions=4)
        assert owners(kafka_broker) == {"alice": [0, 1], "bob": [2, 3]}

        kafka_broker.topics.produce("orders", "order 1041", partition=2)
        assert TopicPartition("orders", 2) in to_bob.result()  # and bob never polls again
        kafka_broker.clock.advance(minutes=1)  # longer than both session timeouts: alice comes back, bob does not
        kafka_broker.groups.wait_stable("billing", members=1, partitions=4)
        assert owners(kafka_broker) == {"alice": [0, 1, 2, 3]}
        assert TopicPartition("orders", 2) in to_alice.result()
