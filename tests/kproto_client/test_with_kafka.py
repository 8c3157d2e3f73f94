"""What depends on brokers, with real ones: added partitions, order by key, checkpoints and the rights they need, leader
epochs, events, the methods of confluent-kafka, async consumers, and a broker that hangs.

`python -m tests.kproto_client` runs all cases with a release.
"""

from __future__ import annotations

import anyio
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType  # type: ignore[attr-defined]

from kproto.client.decisions.checkpoints import CHECKPOINT_TOPIC
from tests.kproto_client import added_partition_cases, catch_up_broker_cases, catch_up_order_cases, reset_cases
from tests.kproto_client.aio_cases import (
    BACKENDS,
    REBALANCES,
    REBALANCES_WITH_CONSUMER_PROTOCOL,
    join_while_a_record_is_processed,
    offsets_of_delivered_records_in_a_transaction,
)
from tests.kproto_client.catch_up_cases import ON, behind, serve
from tests.kproto_client.hung_broker_member import check
from tests.kproto_client.kafka_fixture import LIMIT_S, SHORT_HEARTBEATS, KafkaFixture, read
from tests.kproto_client.parity import differences
from tests.kproto_client.test_checkpoint_topic import warnings
from tests.kproto_client.test_events import each_event_of_a_catch_up, resets_of_safe_latest_and_nearest
from tests.oracle.cluster import NEWEST, real_kafka
from tests.oracle.processes import alive
from tests.waiting import wait_until

EPOCHS = "automatic commits keep metadata and leader epoch"
CASES = {
    **added_partition_cases.CASES,
    **catch_up_order_cases.CASES,
    **catch_up_broker_cases.CASES,
    EPOCHS: reset_cases.CASES[EPOCHS],
}
PROPS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "allow.everyone.if.no.acl.found": "true",
}
RELEASES = {
    "2.8.2": {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"},
    NEWEST: {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", **SHORT_HEARTBEATS},
}
"""With the settings of the release."""


@pytest.mark.oracle
@pytest.mark.parametrize("release", RELEASES)
def test_real_kafka(release: str, caplog: pytest.LogCaptureFixture) -> None:
    with real_kafka(release, props={**PROPS, **RELEASES[release]}) as cluster:
        kafka = KafkaFixture(cluster.bootstrap)
        has_consumer_protocol = release == NEWEST
        further = added_partition_cases.CASES_WITH_CONSUMER_PROTOCOL if has_consumer_protocol else {}
        for run, arguments in {**CASES, **further}.values():
            run(kafka, *arguments)
        rebalances = REBALANCES_WITH_CONSUMER_PROTOCOL if has_consumer_protocol else REBALANCES
        for backend in BACKENDS:
            for settings in rebalances.values():
                anyio.run(join_while_a_record_is_processed, kafka, settings, backend=backend)
            anyio.run(offsets_of_delivered_records_in_a_transaction, kafka, backend=backend)
        resets_of_safe_latest_and_nearest(kafka)
        each_event_of_a_catch_up(kafka)
        assert "\n".join(differences(kafka, consumer_protocol=has_consumer_protocol)) == ""
        pid = alive(cluster.folder / "node-1")
        assert pid is not None
        check(kafka, pid)
        a_user_without_rights_gets_one_warning(kafka, caplog)


def a_user_without_rights_gets_one_warning(kafka: KafkaFixture, caplog: pytest.LogCaptureFixture) -> None:
    """The catch-up works without the checkpoint topic."""
    deny = AclBinding(
        ResourceType.TOPIC,
        CHECKPOINT_TOPIC,
        ResourcePatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        AclOperation.ALL,
        AclPermissionType.DENY,
    )

    def denied() -> bool:
        try:
            for future in kafka.admin.create_acls([deny]).values():
                future.result(LIMIT_S)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN:  # of 2.8.2, after it hung
                return False
            raise
        return True

    wait_until(denied, "an ACL")
    kafka.wait_for_session()
    for merge in (True, False):
        caplog.clear()
        topic, group = behind(kafka)
        with kafka.consumer(group, **ON, parallel_rebalance_merge=merge) as consumer:
            consumer.subscribe([topic])
            assert read(consumer, 50) == list(range(70, 120))
            serve(consumer)
            kafka.write(topic, 1)
            assert read(consumer, 1) == [120]
            consumer.commit(asynchronous=False)
        assert kafka.committed(group, topic) == 121
        assert sum("given up" in warning for warning in warnings(caplog)) == 1
