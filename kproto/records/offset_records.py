"""Records of committed offsets (types 0 and 1 of `__consumer_offsets`; LF-11, LF-12)."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import ZERO_UUID, Int32, Int64, String, Uuid, ignorable, only, since, tag
from kproto.records.coordinator import CoordinatorKey, CoordinatorValue


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


class OffsetCommitValue(CoordinatorValue, versions=(0, 4), flexible=4):
    """v1: + expire_timestamp
    v2: - expire_timestamp
    v3: + leader_epoch
    v4: flexible; + topic_id (tag 0), which only newer brokers write
    """

    offset: Int64
    leader_epoch: Annotated[Int32, since(3), ignorable] = -1
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Annotated[Int64, only(1), ignorable] = -1
    topic_id: Annotated[Uuid, since(4), tag(0, since(4)), ignorable] = ZERO_UUID
