"""Random histories with a broker that hangs; `python -m tests.kproto_client.hung_brokers` runs 1,000 of them."""

import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import confluent_kafka
import pytest

from kproto.client import Consumer
from tests.kproto_client import hung_brokers as hung_brokers_module
from tests.kproto_client.histories import Work
from tests.kproto_client.history_members import CLOSE_EXCESS_S, THREADS_OF_A_CALL, Watch
from tests.kproto_client.hung_brokers import DisturbedBroker, Report, disturb_once, hung_brokers, kproto_broker
from tests.kproto_client.kafka_fixture import KafkaFixture, read, unique_name
from tests.kproto_client.reset_cases import resets

HANG_S = 2.0
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    resets("safe_latest", "latest"),
    resets("latest_on_start", "earliest"),
    {"enable_parallel_rebalance": True, "parallel_rebalance_merge": False},
    {"enable_parallel_rebalance": True, "parallel_rebalance_order": "key"},
)
"""The first is confluent-kafka's."""

DEFECTS = """
import time
from kproto.client.decisions import resets
from kproto.client.pending_resets import PendingResets
resets._is_known_to_be_old = lambda partition: True
PendingResets.wait = lambda self, limit_s: time.sleep(1)
"""
"""Added partitions are read from the end, and an assignment waits."""
ABORT = """
import os
from kproto.client.consumer import Consumer
Consumer.close = lambda self: os.abort()
"""


def run(broker: DisturbedBroker, count: int, planted: str = "", read_limit_s: float = 60.0) -> Report:
    work = Work(bootstrap=broker.bootstrap, seeds=(), side_by_side=20, read_limit_s=read_limit_s)
    return hung_brokers(broker, 1, work, count=count, seconds=0, restarts=False, planted=planted)


def test_histories() -> None:
    """CK-22, CK-24: no record is skipped by safe_latest, and no call waits for a hung broker."""
    with kproto_broker() as broker:
        report = run(broker, 20)
    assert report.findings == []
    assert report.counts["histories"] == 20
    assert report.counts["hangs"] > 0


def test_planted_defects_are_found() -> None:
    with kproto_broker() as broker:
        findings = "\n".join(run(broker, 4, DEFECTS, read_limit_s=0.5).findings)
        assert "not delivered" in findings
        assert "longer than its timeout" in findings
        assert "exit code -6" in "\n".join(run(broker, 1, ABORT).findings)


class Clock:
    """A module `time` that nothing else advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_broker_that_restarts_hangs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver waits before a hang until the broker has rested from a restart: else it only restarts."""
    monkeypatch.setattr(hung_brokers_module, "time", Clock())
    monkeypatch.setattr("os.kill", lambda *_: None)
    broker = DisturbedBroker("", lambda: 0, lambda: None)
    rng = random.Random(1)  # noqa: S311 - reproducible
    for _ in range(200):
        disturb_once(broker, rng, 3.0, restarts=True)
    assert sum(broker.counts.values()) == 200
    assert {name: round(count, -1) for name, count in broker.counts.items()} == {
        "hangs": 100,
        "slow phases": 40,
        "restarts": 60,
    }


def test_a_call_is_not_checked_as_far_as_the_machine_was_late() -> None:
    watch = Watch(lambda _: None, 3.0, finds_losses=True, logs=False)
    started = time.monotonic() + 1000.0  # the thread that measures adds nothing behind it
    for step in range(5000):
        watch.note_lag(started + step, 0.1)
    watch.check("explained", THREADS_OF_A_CALL * 499.0, started)
    watch.check("not explained", THREADS_OF_A_CALL * 501.0, started)
    watch.check("not explained by lags before", THREADS_OF_A_CALL * 101.0, started + 4000)
    assert watch.counts["calls not checked, as the machine was late"] == 1
    assert [each.partition(";")[0] for each in watch.findings] == ["not explained", "not explained by lags before"]


def test_close_takes_no_longer_than_of_confluent_kafka() -> None:
    """CK-24: both wait for the response to the last commit, while the broker hangs."""
    with kproto_broker() as broker, ThreadPoolExecutor() as threads:
        kafka = KafkaFixture(broker.bootstrap)
        topic = kafka.topic()
        kafka.write(topic, 20)
        consumers: list[confluent_kafka.Consumer] = []
        for settings in SETTINGS:
            group = unique_name("group")
            kafka.commit(group, topic, 0)
            config = kafka.config(group, auto_commit_interval_ms=60_000, **settings)
            consumers.append(Consumer(config) if settings else confluent_kafka.Consumer(config))
        for consumer in consumers:
            consumer.subscribe([topic])
            assert read(consumer, 10) == list(range(10))

        def close(consumer: confluent_kafka.Consumer) -> float:
            started = time.monotonic()
            consumer.close()
            return time.monotonic() - started

        os.kill(broker.pid(), signal.SIGSTOP)
        closes = [threads.submit(close, consumer) for consumer in consumers]
        threading.Timer(HANG_S, os.kill, (broker.pid(), signal.SIGCONT)).start()
        plain_s, *ours_s = [each.result() for each in closes]
        assert plain_s > HANG_S - 0.5
        assert max(ours_s) < plain_s + CLOSE_EXCESS_S
