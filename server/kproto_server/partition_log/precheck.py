"""Records of a Produce request at a glance: what brokers see of them before they look where they are to go (BA-62)."""

from __future__ import annotations

from enum import Enum

from kproto.errors import DecodeError
from kproto.records.batches import LOG_OVERHEAD, MAGIC_POSITION, SIZE_MIN, SIZE_POSITION, batch_end
from kproto.records.compression import Compression
from kproto.records.record_batch import MAGIC, TRANSACTIONAL

BATCHES_SINCE = 3
"""The version of Produce from which on records are one batch of magic 2."""
ZSTD_SINCE = 7
ATTRIBUTES_POSITION, CODEC_MASK = 22, 0b111
"""The lower half of the attributes of a batch of magic 2, and what of it names the codec."""
UNREADABLE = -1


class Glance(Enum):
    """What records are, from their first octets. What follows a batch and is cut off does not count."""

    FINE = "what the version may have"
    NOTHING = "no whole batch"
    UNREADABLE = "no batch that there could be"
    TRAILED = "a batch, and after it none that there could be"
    SEVERAL = "not exactly one batch of magic 2"
    TOO_NEW = "zstd, which the version does not know"


def glance(records: bytes, api_version: int) -> Glance:
    """Look at the records of one partition."""
    end = _end(records)
    if end is None:
        return Glance.NOTHING
    if end == UNREADABLE:
        return Glance.UNREADABLE
    if api_version < BATCHES_SINCE:
        return Glance.FINE
    if records[MAGIC_POSITION] != MAGIC:
        return Glance.SEVERAL
    after = _end(records, end)
    if after is not None:
        return Glance.TRAILED if after == UNREADABLE else Glance.SEVERAL
    is_zstd = records[ATTRIBUTES_POSITION] & CODEC_MASK == Compression.ZSTD
    return Glance.TOO_NEW if is_zstd and api_version < ZSTD_SINCE else Glance.FINE


def is_transactional(records: bytes) -> bool:
    """Whether a first batch of magic 2 says that it is of a transaction."""
    is_batch = len(records) > ATTRIBUTES_POSITION and records[MAGIC_POSITION] == MAGIC
    return is_batch and bool(records[ATTRIBUTES_POSITION] & TRANSACTIONAL)


def why_unreadable(records: bytes) -> str:
    """Say what makes records `Glance.UNREADABLE`, in brokers' words."""
    size = int.from_bytes(records[SIZE_POSITION:LOG_OVERHEAD], "big", signed=True)
    if size < SIZE_MIN:
        return f"Record size {size} is less than the minimum record overhead ({SIZE_MIN})"
    magic = int.from_bytes(records[MAGIC_POSITION : MAGIC_POSITION + 1], "big", signed=True)
    return f"Invalid magic found in record: {magic}"


def _end(records: bytes, position: int = 0) -> int | None:
    """Return where the batch that begins here ends; None if that is after the records, -1 if it can't be one."""
    try:
        end = batch_end(records, position)
    except DecodeError:
        return UNREADABLE
    return UNREADABLE if end is not None and records[position + MAGIC_POSITION] > MAGIC else end
