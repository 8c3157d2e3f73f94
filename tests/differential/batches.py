"""What producers send to one partition at random, and what of it fetchers compare."""

from __future__ import annotations

from typing import Any, NamedTuple

from kproto.records.batches import read_batches
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.record import Record
from kproto.records.record_batch import NO_PRODUCER_ID, build_record_batch
from tests.differential.pair import Side


class Batch(NamedTuple):
    """What a producer sends to one partition."""

    topic: str
    partition: int
    records: tuple[Record, ...]
    compression: Compression
    flags: int = 0
    producer: str = ""
    epoch: int = -1
    sequence: int = -1
    damage: str = ""
    magic: int = 2

    def encode(self, side: Side) -> bytes:
        if self.magic < 2:
            return self._damaged(build_message_set(self.records, magic=self.magic, compression=self.compression))
        encoded = build_record_batch(
            self.records,
            compression=self.compression,
            flags=self.flags,
            producer_id=side.value(self.producer) if self.producer else NO_PRODUCER_ID,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        return self._damaged(encoded)

    def _damaged(self, encoded: bytes) -> bytes:
        match self.damage:
            case "checksum":
                return encoded[:-1] + bytes([encoded[-1] ^ 1])
            case "twice":
                return encoded * 2
            case "cut off":
                return encoded[:-3]
            case "empty":
                return b""
            case "magic":
                return encoded[:16] + b"\x05" + encoded[17:]
        return encoded


def readable(records: bytes) -> list[Any]:
    """What batches hold, without what a broker stamps or packs in its own way, and what is cut off at the end."""
    return [
        (
            batch.magic,
            batch.compression.name,
            batch.last_offset,
            [record._replace(timestamp=0) if batch.has_append_time else record for record in batch.records()],
        )
        for batch in read_batches(records)
    ]
