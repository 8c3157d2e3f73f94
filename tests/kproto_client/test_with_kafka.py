"""Added partitions, order by key, checkpoints, leader epochs and a broker that hangs, with real brokers;
`python -m tests.kproto_client` runs all cases with them."""

import pytest

from tests.kproto_client import catch_up_broker_cases, catch_up_order_cases, reset_cases
from tests.kproto_client.added_partition_cases import CASES, CASES_WITH_CONSUMER_PROTOCOL
from tests.kproto_client.hung_broker_member import check
from tests.kproto_client.kafka_fixture import KafkaFixture
from tests.oracle.cluster import NEWEST, real_kafka
from tests.oracle.processes import alive

EPOCHS = "automatic commits keep metadata and leader epoch"
FURTHER = {**catch_up_order_cases.CASES, **catch_up_broker_cases.CASES, EPOCHS: reset_cases.CASES[EPOCHS]}
RELEASES = {"2.8.2": {**CASES, **FURTHER}, NEWEST: {**CASES, **CASES_WITH_CONSUMER_PROTOCOL, **FURTHER}}


@pytest.mark.oracle
@pytest.mark.parametrize("release", RELEASES)
def test_real_kafka(release: str) -> None:
    with real_kafka(release, props={"group.initial.rebalance.delay.ms": "0"}) as cluster:
        kafka = KafkaFixture(cluster.bootstrap)
        for run, arguments in RELEASES[release].values():
            run(kafka, *arguments)
        pid = alive(cluster.folder / "node-1")
        assert pid is not None
        check(kafka, pid)
