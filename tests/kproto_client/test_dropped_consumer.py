"""A consumer that is dropped without `close` leaves its group."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import pytest

from kproto.client import Consumer
from kproto_server import Broker
from tests.kproto_client.kafka_fixture import KafkaFixture, read, unique_name
from tests.kproto_client.parity import MODES
from tests.waiting import wait_until

MODES_WITH_SETTINGS = sorted(name for name, settings in MODES.items() if settings)


def member_count(broker: Broker, group: str) -> int:
    return len(broker.groups.members(group))


@pytest.mark.parametrize("mode", MODES_WITH_SETTINGS)
def test_the_last_reference_closes(kafka: KafkaFixture, broker: Broker, mode: str) -> None:
    """Also with callbacks, and while partitions catch up."""
    topic, group = kafka.log(2), unique_name("group")
    kafka.commit(group, topic, 200)
    revoked: list[Any] = []
    config = {**kafka.config(group, on_commit=lambda *_: None), **MODES[mode]}
    consumer = Consumer(config)
    consumer.subscribe([topic], on_revoke=lambda member, partitions: revoked.append(len(partitions)))
    assert read(consumer, 1, partition=0) == [200]
    assert member_count(broker, group) == 1
    gc.disable()  # the reference count is enough
    try:
        del consumer
        wait_until(lambda: member_count(broker, group) == 0, "the end of the membership")
    finally:
        gc.enable()
    assert revoked == [2]


def test_a_cycle_is_closed_by_the_garbage_collector(kafka: KafkaFixture, broker: Broker) -> None:
    topic, group = kafka.topic(), unique_name("group")
    kafka.write(topic, 1)
    consumer = Consumer(
        kafka.config(group, auto_offset_reset="earliest", auto_offset_reset_on_invalid_offset="nearest")
    )
    consumer.subscribe([topic], on_assign=lambda *_: None)
    read(consumer, 1)
    cycle: list[Any] = [consumer]
    cycle.append(cycle)
    del consumer, cycle
    gc.collect()
    wait_until(lambda: member_count(broker, group) == 0, "the end of the membership")


def test_a_process_that_ends_without_close_leaves(kafka: KafkaFixture, broker: Broker) -> None:
    topic, group = kafka.topic(), unique_name("group")
    kafka.write(topic, 1)
    program = (
        "from kproto.client import Consumer\n"
        f"consumer = Consumer({kafka.config(group, auto_offset_reset='earliest', enable_parallel_rebalance=True)!r})\n"
        f"consumer.subscribe([{topic!r}])\n"
        "while consumer.poll(1) is None: pass\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    wait_until(lambda: member_count(broker, group) == 0, "the end of the membership")
