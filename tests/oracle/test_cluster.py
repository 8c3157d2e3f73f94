"""The start and stop of single brokers, which the KIP-115 tests depend on, as a real client sees them."""

import pytest
from kafka import KafkaAdminClient

from tests.oracle.cluster import real_kafka

pytestmark = pytest.mark.oracle


QUICK_FENCING = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""A restarted broker waits until its previous session has expired."""


def broker_ids(bootstrap: str) -> list[int]:
    """Return the ids of running brokers; kafka-python requests fenced brokers (registered, but down) too."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        brokers = admin.describe_cluster()["brokers"]
        return sorted(broker["broker_id"] for broker in brokers if not broker["is_fenced"])
    finally:
        admin.close()


def test_brokers_of_a_real_cluster_start_and_stop_one_by_one() -> None:
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
