"""The partition of a coordinator's topic that holds the records of a group, a transactional id or a share partition."""

from __future__ import annotations

from functools import lru_cache

from kproto.jvm.arithmetic import INT32_MIN, java_hash
from kproto.jvm.uuid_text import uuid_text

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
"""The log of KRaft's controllers, which is no topic of clients."""

CACHED_KEYS_MAX = 65536
"""The hash of a group id costs more than the rest of a small commit; 64 Ki entries take about 10 MB."""
CACHED_LENGTH_MAX = 256
"""Longer keys are not cached: any client may ask for the coordinator of an id of 32 KB."""


def partition_for(key: str, partition_count: int) -> int:
    """Return the partition that holds a group id or a transactional id (LF-40).

    ``partition_count`` is the count of the existing topic, not of the settings.
    """
    return (_cached_partition if len(key) <= CACHED_LENGTH_MAX else _partition)(key, partition_count)


def _partition(key: str, partition_count: int) -> int:
    value = java_hash(key)
    return 0 if value == INT32_MIN else abs(value) % partition_count


_cached_partition = lru_cache(maxsize=CACHED_KEYS_MAX)(_partition)


def share_partition_name(group_id: str, topic_id: bytes, partition: int) -> str:
    """Return the text that decides which partition of `__share_group_state` has a share partition."""
    return f"{group_id}:{uuid_text(topic_id)}:{partition}"
