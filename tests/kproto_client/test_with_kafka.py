"""Added partitions, order by key and a broker that hangs, with real brokers; `python -m tests.kproto_client` runs all
cases with them."""

import pytest

from tests.kproto_client import catch_up_order_cases
from tests.kproto_client.added_partition_cases import CASES, CASES_WITH_CONSUMER_PROTOCOL
from tests.kproto_client.hung_broker_member import check
from tests.kproto_client.kafka_fixture import KafkaFixture
from tests.oracle.cluster import NEWEST, real_kafka
from tests.oracle.processes import alive

CATCH_UPS = catch_up_order_cases.CASES
RELEASES = {"2.8.2": {**CASES, **CATCH_UPS}, NEWEST: {**CASES, **CASES_WITH_CONSUMER_PROTOCOL, **CATCH_UPS}}


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
