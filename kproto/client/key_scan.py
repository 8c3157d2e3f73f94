"""Reads the keys of catch-up ranges, ahead of consumer 2, for order by key.

The scan reads the range a second time and keeps no record. It runs within the user's calls, a few thousand records at a
time. If a scan fails, no key is known to be free, and the records of consumer 1 wait for the end of the catch-up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from confluent_kafka import Consumer, TopicPartition

from kproto.client.consumer2 import Consumer2, Consumer2Failed
from kproto.client.decisions.buffer1 import RangeKeys
from kproto.client.topic_partitions import PartitionKey, format_partitions

logger: logging.Logger = logging.getLogger("kproto.client")

STEP_FETCHES, FETCH_RECORDS = 8, 500
"""Fetches within a call of the user, and most records of each."""


class KeyScan:
    """The scans of one consumer.

    The object owns its librdkafka consumer, which `close` and the end of the last scan close.
    """

    def __init__(self, open_consumer: Callable[[], Consumer]) -> None:
        self._consumer = Consumer2(open_consumer)
        self._keys: dict[PartitionKey, RangeKeys] = {}

    @property
    def is_open(self) -> bool:
        return bool(self._keys)

    def start(self, keys: Mapping[PartitionKey, RangeKeys], positions: Mapping[PartitionKey, TopicPartition]) -> None:
        self._keys.update(keys)
        self._consumer.assign(positions)

    def stop(self, partitions: Collection[PartitionKey]) -> None:
        for partition in partitions:
            self._keys.pop(partition, None)
        self._consumer.unassign(partitions)

    def serve(self) -> None:
        """Read on, without waiting."""
        for _ in range(STEP_FETCHES if self._keys else 0):
            try:
                fetched = self._consumer.fetch(FETCH_RECORDS, 0)
            except Consumer2Failed as error:
                self._give_up(list(self._keys), str(error))
                return
            for partition, run in fetched.runs:
                self._keys[partition].add(run)
            for partition in fetched.ends.keys() & self._keys.keys():
                self._keys[partition].is_at(fetched.ends[partition])
            if fetched.rejected:
                self._give_up(list(fetched.rejected), "the range is out of range")
            self.stop([partition for partition, keys in self._keys.items() if keys.is_complete])
            if not fetched.runs:
                return

    def close(self) -> None:
        self._keys.clear()
        self._consumer.close()

    def _give_up(self, partitions: Collection[PartitionKey], reason: str) -> None:
        logger.warning(
            "%s: cannot read the keys of the catch-up range, new records wait for its end: %s",
            format_partitions(partitions),
            reason,
        )
        self.stop(partitions)
