"""Batches that random producers send, and the part of fetched batches that is compared."""

from __future__ import annotations

from typing import Any, NamedTuple

from kproto.records.batch_header import NO_PRODUCER_ID
from kproto.records.batches import read_batches
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from tests.differential.broker_pair import ComparedBroker


class Batch(NamedTuple):
    """The records of a producer for one partition."""

    topic: str
    partition: int
    records: tuple[Record, ...]
    compression: Compression
    flags: int = 0
    producer: str = ""
    epoch: int = -1
    sequence: int = -1
    corruption: str = ""
    magic: int = 2

    def encode(self, broker: ComparedBroker) -> bytes:
        if self.magic < 2:
            return self._corrupted(build_message_set(self.records, magic=self.magic, compression=self.compression))
        encoded = build_record_batch(
            self.records,
            compression=self.compression,
            flags=self.flags,
            producer_id=broker.value(self.producer) if self.producer else NO_PRODUCER_ID,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        return self._corrupted(encoded)

    def _corrupted(self, encoded: bytes) -> bytes:
        match self.corruption:
            case "checksum":
                return encoded[:-1] + bytes([encoded[-1] ^ 1])
            case "twice":
                return encoded * 2
            case "truncated":
                return encoded[:-3]
            case "empty":
                return b""
            case "magic":
                return encoded[:16] + b"\x05" + encoded[17:]
        return encoded


def comparable_batches(records: bytes) -> list[Any]:
    """Return the content of batches, without times of brokers and a truncated batch at the end."""
    return [
        (
            batch.magic,
            batch.compression.name,
            batch.last_offset,
            (batch.is_transactional, batch.is_control),
            [
                record._replace(timestamp=0) if batch.has_append_time or batch.is_control else record
                for record in batch.records()
            ],
        )
        for batch in read_batches(records)
    ]
