"""A member whose broker hangs: `python -m tests.kproto_client.hung_broker_member CONFIG TOPIC BROKER_PID`.

CONFIG is JSON. In the first assignment, the member stops the process of the broker by SIGSTOP, and polls with timeout
0; after `HANG_S` it continues the broker, and polls until it has a position. It prints as JSON how long the longest
calls took, and the positions by partition.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import confluent_kafka
from confluent_kafka import TopicPartition

from kproto.client import Consumer
from tests.kproto_client.decision_tables import END
from tests.kproto_client.kafka_fixture import KafkaFixture, unique_name
from tests.kproto_client.reset_cases import resets

HANG_S = 11.0
"""Longer than the limit of each query of the client."""
LIMIT_S = 40.0
PAUSE_S = 0.005
LONGEST_CALL_S = 0.5
"""Of a call with timeout 0, on a busy machine. A query waits for a hung broker until its own limit, 5 s."""


def check(kafka: KafkaFixture, broker_pid: int) -> None:
    """Run the member; assert that no call waits, and that the process survives.

    It has a logger and debug lines, which come as events between the callbacks.
    """
    config = {**kafka.config(unique_name("group"), **resets("safe_latest", "latest")), "debug": "cgrp"}
    arguments = [json.dumps(config), kafka.log(), str(broker_pid)]
    member = subprocess.run(
        [sys.executable, "-m", "tests.kproto_client.hung_broker_member", *arguments], capture_output=True, text=True
    )
    assert member.returncode == 0, member.stderr
    found = json.loads(member.stdout)
    assert found["positions"] == {"0": END}
    assert found["assign"] < LONGEST_CALL_S
    assert found["poll"] < LONGEST_CALL_S


def main(config: str, topic: str, broker_pid: str) -> None:
    logger = logging.getLogger("librdkafka")
    logger.setLevel(logging.CRITICAL)
    consumer = Consumer(json.loads(config), logger=logger)
    pid, hangs_since = int(broker_pid), 0.0
    longest = {"assign": 0.0, "poll": 0.0}

    def on_assign(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        nonlocal hangs_since
        if not hangs_since:
            os.kill(pid, signal.SIGSTOP)
            hangs_since = time.monotonic()
        started = time.monotonic()
        member.assign(partitions)
        longest["assign"] = max(longest["assign"], time.monotonic() - started)

    consumer.subscribe([topic], on_assign=on_assign)
    pause, is_hung = threading.Event(), True
    positions: dict[str, int | None] = {}
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and not positions:
        if is_hung and hangs_since and time.monotonic() - hangs_since > HANG_S:
            is_hung = False
            os.kill(pid, signal.SIGCONT)
        started = time.monotonic()
        message = consumer.poll(0)
        longest["poll"] = max(longest["poll"], time.monotonic() - started)
        if message is None:
            pause.wait(PAUSE_S)
        elif (error := message.error()) is None or error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
            positions.setdefault(str(message.partition()), message.offset())
    consumer.close()
    print(json.dumps({**longest, "positions": positions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
