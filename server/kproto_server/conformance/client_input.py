"""The records that a client under test has to copy: how they come into the topic, and where each of them is."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from kproto_server.broker.producing import NewRecord

if TYPE_CHECKING:
    from kproto_server.broker.broker import Broker
    from kproto_server.conformance.cases import ClientCase

TOPIC, GROUP = "conform-in", "conform"
PARTITIONS = 2
RECORDS = 10
"""Records that are there at first, and again after the fault."""
DELETED = 2
"""Records of each partition that were there before the first ones, if the case has deleted ones."""
AFTER_END = 1000
"""An offset that no partition has."""


class Input:
    """The input topic of one case, and what the group has committed of it."""

    def __init__(self, broker: Broker, case: ClientCase) -> None:
        self._broker = broker
        self._case = case
        self.places: dict[bytes | None, tuple[int, int]] = {}
        """Partition and offset of each record that the client has to copy, by its value."""
        if case.first_offsets == "before-start":
            for _, partition in product(range(DELETED), range(PARTITIONS)):
                broker.topics.produce(TOPIC, "deleted", partition=partition)
            broker.topics.delete_records(TOPIC, before_offset=DELETED)
        if case.first_offsets is not None:
            offset = DELETED - 1 if case.first_offsets == "before-start" else AFTER_END
            broker.groups.commit(GROUP, {(TOPIC, partition): offset for partition in range(PARTITIONS)})

    def produce_half(self) -> None:
        """Append the next records, to each partition in turn."""
        first = len(self.places)
        values = [f"record {number}" for number in range(first, first + RECORDS)]
        records = [NewRecord(value, partition=number % PARTITIONS) for number, value in enumerate(values)]
        self._abort(first)
        if self._case.is_transactional:
            found = self._broker.topics.produce(TOPIC, records=records, transaction="commit")
        else:  # a batch for each
            found = tuple(
                place
                for record in records
                for place in self._broker.topics.produce(TOPIC, records=[record], compression=self._case.compression)
            )
        self._abort(first + RECORDS)
        self.places |= {
            value.encode(): (place.partition, place.offset) for value, place in zip(values, found, strict=True)
        }

    def committed(self) -> set[bytes | None]:
        """Return the values of the records that are before the committed offset of their partition."""
        committed = self._broker.groups.committed(GROUP)
        offsets = [committed.get((TOPIC, partition), 0) for partition in range(PARTITIONS)]
        return {value for value, (partition, offset) in self.places.items() if offset < offsets[partition] != AFTER_END}

    def is_committed(self) -> bool:
        """Return whether the group has committed the offsets of all records."""
        return self.committed() == self.places.keys()

    def _abort(self, number: int) -> None:
        """Append a record of an aborted transaction to each partition, if the case has transactions."""
        if self._case.is_transactional:
            aborted = [NewRecord(f"aborted {number}", partition=partition) for partition in range(PARTITIONS)]
            self._broker.topics.produce(TOPIC, records=aborted, transaction="abort")
