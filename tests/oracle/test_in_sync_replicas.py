"""Too few in-sync replicas: real clusters and kproto respond the same to the same script."""

from __future__ import annotations

import pytest

from kproto_server.broker.broker import Broker
from tests.oracle.cluster import real_kafka
from tests.oracle.in_sync_replicas import BROKERS, SETTINGS, shrink
from tests.oracle.kproto_cluster import KprotoCluster

REAL_SETTINGS = {**SETTINGS, "transaction.state.log.min.isr": "2"}
"""With Kafka's default, which the script that starts clusters changes."""

pytestmark = pytest.mark.oracle


def test_a_real_cluster_and_kproto_respond_the_same() -> None:
    release = "4.4.0"
    with real_kafka(release, brokers=BROKERS, props=REAL_SETTINGS) as cluster:
        real = shrink(cluster)
    with Broker(kafka_version=release, brokers=BROKERS, settings=SETTINGS) as broker:
        tested = shrink(KprotoCluster(broker))
    assert tested == real
