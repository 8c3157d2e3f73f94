"""The value of a committed offset, in parts around the fields that differ from commit to commit (LF-12, OC-43).

All versions have offset, metadata and commit timestamp in this order, and other fields between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.declaration import ZERO_UUID
from kproto.records.offset_records import (
    FLEXIBLE_SINCE,
    HAS_EXPIRE_TIMESTAMP,
    LEADER_EPOCH_SINCE,
    NO_TAGS,
    TOPIC_ID_TAG,
)
from kproto.records.varint import varint
from kproto.runtime import uvarint
from kproto_server.coordinator.offsets_log.batches import string, string_bytes

if TYPE_CHECKING:
    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior

TIME_SIZE = 8
OFFSET_SIZE = 8


class ValueParts(NamedTuple):
    """An encoded value without its offset and timestamps."""

    size: int
    """The size of the whole value in bytes, including the size field before it."""
    head: bytes
    """The value's size and version, before the offset."""
    middle: bytes
    """Leader epoch and metadata, between offset and commit timestamp."""
    has_expiry: bool
    """Whether an expire timestamp follows the commit timestamp."""
    end: bytes
    """Tags."""


def value_parts(
    metadata: str, leader_epoch: int, topic_id: bytes, *, expires: bool, behavior: OffsetsLogBehavior
) -> ValueParts:
    """Return the parts of the value that the release writes.

    Raises:
        EncodeError: the metadata is longer than readers accept.
    """
    version = behavior.expiring_offset_value_version if expires else behavior.offset_value_version
    epoch = leader_epoch.to_bytes(4, "big", signed=True) if version >= LEADER_EPOCH_SINCE else b""
    end = b""
    if version >= FLEXIBLE_SINCE:
        text = string_bytes(metadata)
        middle = epoch + uvarint(len(text) + 1) + text
        end = NO_TAGS if topic_id == ZERO_UUID else TOPIC_ID_TAG + topic_id
    else:
        middle = epoch + string(metadata)
    has_expiry = version == HAS_EXPIRE_TIMESTAMP
    size = 2 + OFFSET_SIZE + len(middle) + (2 if has_expiry else 1) * TIME_SIZE + len(end)
    before = varint(size)
    return ValueParts(len(before) + size, before + version.to_bytes(2, "big"), middle, has_expiry, end)
