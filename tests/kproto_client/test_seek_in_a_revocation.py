"""A seek while partitions are revoked: in the callback, or by an async user whose record is being finished.

A partition without a position is sought by an assignment. confluent-kafka takes an assignment in a callback for the
user's response to it, and then assigns nothing itself: the group would wait for the member until its session ends.
"""

from __future__ import annotations

from contextlib import suppress

import confluent_kafka
import pytest
from confluent_kafka import KafkaException, TopicPartition

from kproto.client import Consumer, NoOffsetForPartition
from tests.kproto_client.kafka_fixture import KafkaFixture, unique_name
from tests.kproto_client.reset_cases import resets
from tests.waiting import wait_until


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_partitions_are_revoked_after_a_seek_in_the_callback(kafka: KafkaFixture, strategy: str) -> None:
    topic, group = kafka.log(2), unique_name("group")
    config = kafka.config(group, **resets("none", "none", "nearest"), partition_assignment_strategy=strategy)
    plain = kafka.config(group, auto_offset_reset="earliest", partition_assignment_strategy=strategy)
    revoked: list[list[int]] = []

    def on_revoke(consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        revoked.append([each.partition for each in partitions])
        for each in partitions:
            with suppress(KafkaException):  # within `close`
                consumer.seek(TopicPartition(topic, each.partition, 0))

    with Consumer(config) as first, confluent_kafka.Consumer(plain) as second:
        first.subscribe([topic], on_revoke=on_revoke)
        with pytest.raises(NoOffsetForPartition):
            wait_until(lambda: first.poll(0.05) is not None, "an error")
        second.subscribe([topic])

        def are_shared() -> bool:
            with suppress(NoOffsetForPartition):  # of the partition that it gets now
                first.poll(0.05)
            second.poll(0.05)
            return len(first.assignment()) == len(second.assignment()) == 1

        wait_until(are_shared, "one partition for each")
        assert revoked
