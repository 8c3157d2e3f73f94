"""What happens when Metadata names a topic that does not exist: by release, an error, a creation, or both.

A ZooKeeper broker makes the topic itself, and answers LEADER_NOT_AVAILABLE since the leader is not elected yet. A
KRaft broker asks the controller to make it and meanwhile says that there is none. Either way the next request
finds it (BA-32). The internal topics go by rules of their own (BA-50).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import OFFSETS_TOPIC, TRANSACTION_TOPIC, Refusal, name_problem

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Cluster


def missing_topic_error(cluster: Cluster, name: str, allowed_by_request: bool, now_ms: int) -> ErrorCode:
    """Return the error for a topic that does not exist, and make it where the release would (BA-32, BA-33, BA-50)."""
    allowed = allowed_by_request and cluster.defaults.auto_create
    if cluster.profile.auto_create_answers_leader_not_available:
        return _zookeeper(cluster, name, allowed, now_ms)
    return _kraft(cluster, name, allowed, now_ms)


def _zookeeper(cluster: Cluster, name: str, allowed: bool, now_ms: int) -> ErrorCode:
    if name in (OFFSETS_TOPIC, TRANSACTION_TOPIC):
        made = _ensure_internal(cluster, name, now_ms)
        return ErrorCode.LEADER_NOT_AVAILABLE if made else ErrorCode.INVALID_REPLICATION_FACTOR
    if not allowed:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    made = cluster.create_topic(name, now_ms=now_ms)
    return made.error if isinstance(made, Refusal) else ErrorCode.LEADER_NOT_AVAILABLE


def _kraft(cluster: Cluster, name: str, allowed: bool, now_ms: int) -> ErrorCode:
    if name_problem(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if allowed:
        if name in (OFFSETS_TOPIC, TRANSACTION_TOPIC):
            _ensure_internal(cluster, name, now_ms)
        else:
            cluster.create_topic(name, now_ms=now_ms)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _ensure_internal(cluster: Cluster, name: str, now_ms: int) -> bool:
    if name == OFFSETS_TOPIC:
        return cluster.ensure_offsets_topic(now_ms)
    return cluster.ensure_transaction_topic(now_ms)
