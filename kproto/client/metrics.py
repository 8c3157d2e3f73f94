"""Metrics of OpenTelemetry, if `opentelemetry-api` is installed. Without a meter provider they cost next to nothing."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from kproto.client.decisions.events import (
    CatchUpDone,
    CatchUpProgress,
    CatchUpStarted,
    CatchUpStopped,
    CheckpointsFailed,
    CheckpointWritten,
    Event,
    PositionReset,
)
from kproto.client.topic_partitions import PartitionKey

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Counter, Observation

SCOPE = "kproto.client"
GROUP, TOPIC, PARTITION = (
    "messaging.consumer.group.name",
    "messaging.destination.name",
    "messaging.destination.partition.id",
)
"""Attributes of OpenTelemetry's semantic conventions."""
REASON = "reason"


def open_metrics(group: str) -> Metrics | None:
    """Return the metrics of a consumer, None if OpenTelemetry is not installed."""
    instruments = _instruments()
    return None if instruments is None else Metrics(group, instruments)


class Metrics:
    """Adds events to the instruments."""

    def __init__(self, group: str, instruments: _Instruments) -> None:
        self._group = group
        self._instruments = instruments
        self._records_left: dict[PartitionKey, int] = {}
        instruments.add_consumer(self)

    def add(self, event: Event) -> None:
        instruments = self._instruments
        match event:
            case PositionReset():
                attributes = {**self._attributes(event.topic, event.partition), REASON: event.reason.value}
                instruments.resets.add(1, attributes)
                instruments.skipped.add(event.records_skipped, attributes)
                instruments.read_again.add(event.records_read_again, attributes)
            case CatchUpStarted() | CatchUpProgress():
                self._records_left[event.topic, event.partition] = event.records_left
            case CatchUpDone() | CatchUpStopped():
                self._records_left.pop((event.topic, event.partition), None)
            case CheckpointWritten():
                instruments.checkpoints.add(1, self._attributes(event.topic, event.partition))
            case CheckpointsFailed():
                instruments.checkpoint_failures.add(1, {GROUP: self._group})
            case _:
                pass

    def records_left(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the records left of each partition that catches up, with its attributes."""
        for partition, records_left in list(self._records_left.items()):
            yield records_left, self._attributes(*partition)

    def _attributes(self, topic: str, partition: int) -> dict[str, Any]:
        return {GROUP: self._group, TOPIC: topic, PARTITION: str(partition)}


class _Instruments:
    """The instruments of all consumers of the process.

    OpenTelemetry never forgets the callback of a gauge, so there is one for all consumers.
    """

    def __init__(self) -> None:
        from opentelemetry import metrics

        meter = metrics.get_meter(SCOPE)
        self.resets: Counter = meter.create_counter(
            "kafka.consumer.position.resets", "{reset}", "Positions that were reset"
        )
        self.skipped: Counter = meter.create_counter(
            "kafka.consumer.position.records_skipped", "{record}", "Offsets that resets skipped"
        )
        self.read_again: Counter = meter.create_counter(
            "kafka.consumer.position.records_read_again", "{record}", "Offsets that are read again after resets"
        )
        self.checkpoints: Counter = meter.create_counter(
            "kafka.consumer.checkpoints.written", "{checkpoint}", "Checkpoints of catch-up ranges that were written"
        )
        self.checkpoint_failures: Counter = meter.create_counter(
            "kafka.consumer.checkpoints.failures", "{failure}", "Failures to write checkpoints"
        )
        self._observation = metrics.Observation
        self._consumers: weakref.WeakSet[Metrics] = weakref.WeakSet()
        self._lock = threading.Lock()
        meter.create_observable_gauge(
            "kafka.consumer.catch_up.records_left", [self._observe], "{record}", "Offsets left in catch-up ranges"
        )

    def add_consumer(self, consumer: Metrics) -> None:
        with self._lock:
            self._consumers.add(consumer)

    def _observe(self, _: CallbackOptions) -> Iterator[Observation]:
        """Called in a thread of a metric reader."""
        with self._lock:
            consumers = list(self._consumers)
        for consumer in consumers:
            for records_left, attributes in consumer.records_left():
                yield self._observation(records_left, attributes)


@cache
def _instruments() -> _Instruments | None:
    try:
        return _Instruments()
    except ImportError:
        return None
