"""One in-process broker per test process, with a clock that some tests advance."""

from collections.abc import Iterator

import pytest

from kproto_server import Broker
from tests.kproto_client.kafka_fixture import SHORT_HEARTBEATS, KafkaFixture


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    settings = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 4, **SHORT_HEARTBEATS}
    with Broker.running(settings=settings) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(broker: Broker) -> KafkaFixture:
    return KafkaFixture(broker.bootstrap_servers)
