"""Records of committed offsets (types 0 and 1 of `__consumer_offsets`; LF-11, LF-12).

Three parts of kproto decode these values without the codec, because they decode millions: `coordinator.loading`
one record at a time (`fast_decoder`: 2.5 times as fast) and whole batches of known layout (`batch_templates`), and
`kproto.arrow.commit_columns` all records of a block with numpy. They take versions, tags and defaults from here, and
tests compare each with the codec.
"""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import ZERO_UUID, Int32, Int64, String, Uuid, ignorable, only, since, tag
from kproto.records.coordinator import CoordinatorKey, CoordinatorValue

HAS_EXPIRE_TIMESTAMP = 1
"""The only version of the value with an expire timestamp."""
LEADER_EPOCH_SINCE = 3
FLEXIBLE_SINCE = 4
VERSION_MAX = 4
NO_LEADER_EPOCH = NO_EXPIRE_TIMESTAMP = -1

NO_TAGS = b"\0"
"""The tag section of a value without topic id."""
TOPIC_ID_TAG = b"\1\0\x10"
"""The tag section of a value with a topic id, before the id: one tag, number 0, 16 bytes."""


class LegacyOffsetCommitKey(CoordinatorKey, record_type=0):
    """The key that 0.8.2 writes."""

    group: String
    topic: String
    partition: Int32


class LegacyOffsetCommitValue(CoordinatorValue, versions=(0, 0)):
    """The value that 0.8.2 writes; the same as v0 of the newer type."""

    offset: Int64
    metadata: String
    commit_timestamp: Int64


class OffsetCommitKey(CoordinatorKey, record_type=1):
    group: String
    topic: String
    partition: Int32


class OffsetCommitValue(CoordinatorValue, versions=(0, VERSION_MAX), flexible=FLEXIBLE_SINCE):
    """v1: + expire_timestamp
    v2: - expire_timestamp
    v3: + leader_epoch
    v4: flexible; + topic_id (tag 0), which only newer brokers write
    """

    offset: Int64
    leader_epoch: Annotated[Int32, since(LEADER_EPOCH_SINCE), ignorable] = NO_LEADER_EPOCH
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Annotated[Int64, only(HAS_EXPIRE_TIMESTAMP), ignorable] = NO_EXPIRE_TIMESTAMP
    topic_id: Annotated[Uuid, since(FLEXIBLE_SINCE), tag(0, since(FLEXIBLE_SINCE)), ignorable] = ZERO_UUID
