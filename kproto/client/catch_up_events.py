"""The events of the catch-ups of one consumer."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from confluent_kafka import Message

from kproto.client.decisions.catch_up import PartitionCatchUp, Phase
from kproto.client.decisions.catch_up_rate import CatchUpRate
from kproto.client.decisions.events import (
    CatchUpDone,
    CatchUpProgress,
    CatchUpStarted,
    CatchUpStopped,
    CheckpointsRead,
    StopReason,
    size_of,
)
from kproto.client.events import Publish
from kproto.client.topic_partitions import PartitionKey

PROGRESS_INTERVAL_S = 1.0

CatchUp = PartitionCatchUp[Message]


class CatchUpEvents:
    """Measures the catch-ups that run, and publishes their events."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._rates: dict[PartitionKey, CatchUpRate] = {}
        """Of the partitions whose ranges are not delivered yet."""
        self._next_progress_at = 0.0
        """On the monotonic clock."""

    def started(self, partition: PartitionKey, catch_up: CatchUp) -> None:
        ranges, now = catch_up.ranges, monotonic()
        topic, index = partition
        if not self._rates:
            self._next_progress_at = now + PROGRESS_INTERVAL_S
        self._rates[partition] = CatchUpRate(now, size_of(ranges))
        self._publish(
            CatchUpStarted(
                topic=topic,
                partition=index,
                ranges=ranges,
                consumer1_start=catch_up.consumer1_start,
                records_left=size_of(ranges),
            )
        )

    def divided(self, partition: PartitionKey, catch_up: CatchUp) -> None:
        """The checkpoints of earlier owners are read."""
        topic, index = partition
        self._publish(CheckpointsRead(topic=topic, partition=index, ranges=catch_up.ranges))

    def publish_progress(self, catch_ups: Mapping[PartitionKey, CatchUp]) -> None:
        """Publish the progress of each catch-up, once in an interval."""
        now = monotonic()
        if now < self._next_progress_at:
            return
        self._next_progress_at = now + PROGRESS_INTERVAL_S
        for partition, rate in self._rates.items():
            catch_up = catch_ups[partition]
            ranges = catch_up.ranges
            records_left = size_of(ranges)
            per_s, seconds_left = rate.measure(now, records_left)
            topic, index = partition
            self._publish(
                CatchUpProgress(
                    topic=topic,
                    partition=index,
                    ranges=ranges,
                    records_left=records_left,
                    records_per_s=per_s,
                    seconds_left=seconds_left,
                )
            )

    def done(self, partition: PartitionKey, offset: int) -> None:
        """All records of the ranges are delivered."""
        rate = self._rates.pop(partition)
        topic, index = partition
        duration_s = monotonic() - rate.started_s
        self._publish(
            CatchUpDone(topic=topic, partition=index, offset=offset, records=rate.records, duration_s=duration_s)
        )

    def stopped(self, partition: PartitionKey, catch_up: CatchUp, reason: StopReason) -> None:
        """The partition is forgotten; the last records of its ranges may be delivered."""
        if partition not in self._rates:
            return
        assert catch_up.phase is Phase.CATCHING_UP
        if not catch_up.ranges:
            self.done(partition, catch_up.position)
            return
        del self._rates[partition]
        topic, index = partition
        self._publish(
            CatchUpStopped(
                topic=topic,
                partition=index,
                offset=catch_up.position,
                records_left=size_of(catch_up.ranges),
                reason=reason,
            )
        )
