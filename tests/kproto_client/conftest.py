"""One broker for all tests of a process: in process, with a clock that some tests move."""

from collections.abc import Iterator

import pytest

from kproto_server import Broker
from tests.kproto_client.kafka_side import KafkaSide


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    settings = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 4}
    with Broker.running(settings=settings) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(broker: Broker) -> KafkaSide:
    return KafkaSide(broker.bootstrap_servers)
