"""KIP-848 in 3.7 to 3.9, as brokers with default settings serve it."""

from __future__ import annotations

import pytest

from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from kproto_server.configuration.settings import SettingError, Settings
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.broker_state import ask, new_state


@pytest.mark.parametrize("release", ["3.7.2", "3.8.1", "3.9.2"])
def test_early_access_is_not_served(release: str) -> None:
    join = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="", member_epoch=0, rebalance_timeout_ms=1000, subscribed_topic_names=("t",),
        topic_partitions=(),
    )  # fmt: skip
    joined = ask(new_state(release), join, 0)
    assert (joined.error_code, joined.error_message, joined.member_id) == (35, None, None)
    if release != "3.7.2":
        describe = ConsumerGroupDescribeRequest(group_ids=("g",), include_authorized_operations=False)
        (group,) = ask(new_state(release), describe, 0).groups
        assert (group.error_code, group.error_message) == (35, None)
    with pytest.raises(SettingError, match="does nothing here"):
        Settings(KafkaVersion.named(release)).with_assignments(
            ["group.coordinator.rebalance.protocols=classic,consumer"]
        )
