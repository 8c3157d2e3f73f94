"""The records that a client under test has to copy: how they come into the topic, and where each of them is."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.broker.producing import NewRecord, ProducedRecord
from kproto_server.conformance.cases import HUGE_BATCH_KIB
from kproto_server.network.moves import truncate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.broker.broker import Broker
    from kproto_server.conformance.cases import ClientCase
    from kproto_server.network.server import Server

TOPIC, GROUP = "conform-in", "conform"
PARTITIONS = 2
RECORDS = 10
"""Records that are there at first, and again after the fault."""
DELETED = 2
"""Records of each partition that were there before the first ones, if the case has deleted ones."""
HUGE_RECORD_BYTES = HUGE_BATCH_KIB * 1024 * PARTITIONS // RECORDS
EMPTY_OFFSETS = 3
"""Offsets of a batch without records."""
KEPT = 3
"""Records of each partition, in batches of their own, that a truncation leaves."""
AFTER_END = 1000
"""An offset that no partition has."""


class Input:
    """The input topic of one case, and what the group has committed of it."""

    def __init__(self, broker: Broker, case: ClientCase) -> None:
        self._broker = broker
        self._case = case
        self.places: dict[bytes | None, tuple[int, int]] = {}
        """Partition and offset of each record that the client has to copy, by its value."""
        self.truncated: set[bytes | None] = set()
        """The values of records that the log has no more."""
        if case.first_offsets == "before-start":
            for _, partition in product(range(DELETED), range(PARTITIONS)):
                broker.topics.produce(TOPIC, "deleted", partition=partition)
            broker.topics.delete_records(TOPIC, before_offset=DELETED)
        if case.first_offsets is not None:
            offset = DELETED - 1 if case.first_offsets == "before-start" else AFTER_END
            broker.groups.commit(GROUP, {(TOPIC, partition): offset for partition in range(PARTITIONS)})

    def produce_half(self) -> None:
        """Append the next records, to each partition in turn."""
        first = len(self.places) + len(self.truncated)
        values = [f"record {number}" for number in range(first, first + RECORDS)]
        records = [NewRecord(value, partition=number % PARTITIONS) for number, value in enumerate(values)]
        self._abort(first)
        found: tuple[ProducedRecord, ...]
        if self._case.batches is not None:
            if self._case.batches == "huge":
                values = [value.ljust(HUGE_RECORD_BYTES, ".") for value in values]
            found = self._append_batches(values)
        elif self._case.is_transactional:
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

    def truncate(self) -> None:
        """Truncate each partition behind its first records; the others do not have to be copied any more."""

        def truncate_all(server: Server) -> None:
            for partition in range(PARTITIONS):
                truncate(server.state, TOPIC, partition, KEPT)

        self._broker._call(truncate_all)
        self.truncated = {value for value, (_, offset) in self.places.items() if offset >= KEPT}
        for value in self.truncated:
            del self.places[value]

    def committed(self) -> set[bytes | None]:
        """Return the values of the records that are before the committed offset of their partition."""
        committed = self._broker.groups.committed(GROUP)
        offsets = [committed.get((TOPIC, partition), 0) for partition in range(PARTITIONS)]
        return {value for value, (partition, offset) in self.places.items() if offset < offsets[partition] != AFTER_END}

    def is_committed(self) -> bool:
        """Return whether the group has committed the offsets of all records."""
        return self.committed() == self.places.keys()

    def _append_batches(self, values: Sequence[str]) -> tuple[ProducedRecord, ...]:
        """Append values in batches as no producer sends them, to the log itself; return where each of them is."""
        found: dict[int, ProducedRecord] = {}
        for partition in range(PARTITIONS):
            numbers = range(partition, len(values), PARTITIONS)
            groups = [numbers] if self._case.batches == "huge" else [(number,) for number in numbers]
            for group in groups:
                self._append_empty(partition)
                base_offset = self._append_batch(partition, [values[number].encode() for number in group])
                found |= {number: ProducedRecord(partition, base_offset + at) for at, number in enumerate(group)}
            self._append_empty(partition)
        return tuple(found[number] for number in range(len(values)))

    def _append_empty(self, partition: int) -> None:
        """Append a batch whose records compaction has deleted, if the case has empty batches."""
        if self._case.batches == "empty":
            self._append_batch(partition, (), offset_count=EMPTY_OFFSETS)

    def _append_batch(self, partition: int, values: Sequence[bytes], offset_count: int = 0) -> int:
        """Append a batch to the log, and return its base offset. ``offset_count``: of a batch without records."""

        def append(server: Server) -> int:
            topic, now_ms = server.state.cluster.topics[TOPIC], server.state.clock.now_ms()
            one = topic.partitions[partition]
            records = [Record(None, value, offset=at, timestamp=now_ms) for at, value in enumerate(values)]
            last_delta = (offset_count or len(values)) - 1
            batch = build_record_batch(records, last_offset=last_delta)
            data = server.state.log_manager.data_of(topic, one)
            return data.append(batch, last_delta, now_ms, one.leader_epoch).base_offset

        return self._broker._call(append)

    def _abort(self, number: int) -> None:
        """Append a record of an aborted transaction to each partition, if the case has transactions."""
        if self._case.is_transactional:
            aborted = [NewRecord(f"aborted {number}", partition=partition) for partition in range(PARTITIONS)]
            self._broker.topics.produce(TOPIC, records=aborted, transaction="abort")
