"""OpenTelemetry's metrics of a consumer, and a consumer without OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from tests.kproto_client.catch_up_cases import behind, serve
from tests.kproto_client.decision_tables import ABOVE, BELOW, END, START
from tests.kproto_client.kafka_fixture import KafkaFixture, read, start_position, unique_name
from tests.waiting import wait_until

NEAREST = {"auto_offset_reset_on_invalid_offset": "nearest"}
CHECKPOINTS = "kafka.consumer.checkpoints.written"
RECORDS_LEFT = "kafka.consumer.catch_up.records_left"
RESETS, SKIPPED, READ_AGAIN = (
    "kafka.consumer.position.resets",
    "kafka.consumer.position.records_skipped",
    "kafka.consumer.position.records_read_again",
)
Collect = Callable[[str, str], dict[str, int]]
"""Returns the sum of a metric of a group, by reason; the reason of most metrics is empty."""


@pytest.fixture(scope="module")
def reader() -> InMemoryMetricReader:
    """OpenTelemetry accepts one provider in a process; consumers may be older than it."""
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    return reader


@pytest.fixture
def collect(reader: InMemoryMetricReader) -> Collect:
    def collect(name: str, group: str) -> dict[str, int]:
        sums: dict[str, int] = {}
        for metric in _metrics(reader):
            for point in metric.data.data_points if metric.name == name else ():
                attributes = dict(point.attributes)
                if attributes.pop("messaging.consumer.group.name") == group:
                    reason = str(attributes.pop("reason", ""))
                    assert attributes.pop("messaging.destination.partition.id") == "0"
                    assert attributes.keys() == {"messaging.destination.name"}
                    sums[reason] = sums.get(reason, 0) + point.value
        return sums

    return collect


def _metrics(reader: InMemoryMetricReader) -> list[Any]:
    data: Any = reader.get_metrics_data()
    if data is None:
        return []
    scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
    return [metric for scope in scopes if scope.scope.name == "kproto.client" for metric in scope.metrics]


def test_resets_are_counted_by_reason(kafka: KafkaFixture, collect: Collect) -> None:
    topic, group = kafka.log(), unique_name("group")
    with kafka.consumer(group, **NEAREST, auto_offset_reset="latest") as consumer:
        consumer.subscribe([topic])
        assert start_position(consumer) == END
    for committed, position in ((BELOW, START), (ABOVE, END)):
        kafka.commit(group, topic, committed)
        with kafka.consumer(group, **NEAREST, enable_auto_commit=False) as consumer:
            consumer.subscribe([topic])
            assert start_position(consumer) == position
    assert collect(RESETS, group) == {"no_committed_offset": 1, "out_of_range": 2}
    assert collect(SKIPPED, group) == {"no_committed_offset": END - START, "out_of_range": START - BELOW}
    assert collect(READ_AGAIN, group) == {"no_committed_offset": 0, "out_of_range": ABOVE - END}


def test_a_catch_up_is_measured_while_it_runs(kafka: KafkaFixture, collect: Collect) -> None:
    topic, group = behind(kafka)
    with kafka.consumer(group, enable_parallel_rebalance=True) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        assert collect(RECORDS_LEFT, group)[""] in (49, 50)
        serve(consumer)
        assert collect(CHECKPOINTS, group)[""] >= 2
        assert read(consumer, 49)[-1] == 119
        wait_until(lambda: (consumer.poll(0.01), not collect(RECORDS_LEFT, group))[1], "the end of the catch-up")
    other = unique_name("group")
    kafka.commit(other, topic, 0)
    with kafka.consumer(other, enable_parallel_rebalance=True) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        assert collect(RECORDS_LEFT, other)[""] in (119, 120)
    assert collect(RECORDS_LEFT, other) == {}, "a closed consumer has no catch-up"


def test_units(reader: InMemoryMetricReader, kafka: KafkaFixture, collect: Collect) -> None:
    test_resets_are_counted_by_reason(kafka, collect)
    units = {metric.name: metric.unit for metric in _metrics(reader)}
    assert {name: units[name] for name in (RESETS, SKIPPED, READ_AGAIN)} == {
        RESETS: "{reset}",
        SKIPPED: "{record}",
        READ_AGAIN: "{record}",
    }


WITHOUT_OPENTELEMETRY = """
import sys
sys.modules["opentelemetry"] = None
from kproto.client import Consumer, PositionReset
events = []
with Consumer({**CONFIG, "event_cb": events.append}) as consumer:
    consumer.subscribe([TOPIC])
    while not events:
        consumer.poll(0.1)
    assert isinstance(events[0], PositionReset), events
    print(events[0].to_offset)
"""


def test_a_consumer_without_opentelemetry(kafka: KafkaFixture) -> None:
    topic = kafka.log()
    config = kafka.config(unique_name("group"), **NEAREST, auto_offset_reset="earliest")
    program = f"CONFIG = {config!r}\nTOPIC = {topic!r}\n{WITHOUT_OPENTELEMETRY}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{START}\n"), done.stderr
