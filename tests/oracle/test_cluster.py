"""The start and stop of single brokers, which tests of KIP-115 stand on, seen by a real client."""

import pytest
from kafka import KafkaAdminClient

from tests.oracle.cluster import real_kafka

pytestmark = pytest.mark.oracle


QUICK_FENCING = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""A broker that comes back has to wait until the session of its former self is over."""


def broker_ids(bootstrap: str) -> list[int]:
    """kafka-python asks for fenced brokers too: those that are registered, but down."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        brokers = admin.describe_cluster()["brokers"]
        return sorted(broker["broker_id"] for broker in brokers if not broker["is_fenced"])
    finally:
        admin.close()


def test_brokers_of_a_real_cluster_come_up_and_go_down_one_by_one() -> None:
    with real_kafka(brokers=3, up=1, props=QUICK_FENCING) as cluster:
        assert broker_ids(cluster.addresses[0]) == [1]
        cluster.start(2)
        assert broker_ids(cluster.addresses[0]) == [1, 2]
        cluster.start(3)
        assert broker_ids(cluster.addresses[1]) == [1, 2, 3]
        cluster.stop(2)
        assert broker_ids(cluster.addresses[2]) == [1, 3]
        cluster.start(2)
        assert broker_ids(cluster.addresses[1]) == [1, 2, 3]
