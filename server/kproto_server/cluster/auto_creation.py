"""Metadata requests for missing topics: an error, a new topic, or both, depending on the release.

A ZooKeeper broker creates the topic and returns LEADER_NOT_AVAILABLE, since the leader is not elected yet. A KRaft
broker asks the controller to create the topic and returns UNKNOWN_TOPIC_OR_PARTITION, also if it cannot be created. In
both modes the next request finds the topic (BA-32). The topics of the coordinators have rules of their own (BA-50).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import COORDINATED_TOPICS, Refusal, TopicsNotStored, name_problem

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Topic

Take = Callable[[int], Refusal | None]


def missing_topic_error(
    cluster: Cluster, name: str, allowed_by_request: bool, now_ms: int, take: Take | None = None
) -> ErrorCode:
    """Return the error for a missing topic, and create the topic if the release does (BA-32, BA-33, BA-50).

    ``take``: takes partitions from the client's quota, or returns why they are refused; None: there is no quota.
    """
    behavior = cluster.behavior
    allowed = allowed_by_request and cluster.defaults.auto_create
    if behavior.metadata_checks_topic_name_first and name_problem(name, cluster.kafka_version) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if name in COORDINATED_TOPICS and behavior.metadata_always_creates_internal_topics:
        made = cluster.ensure_internal_topic(name, now_ms)
        return ErrorCode.LEADER_NOT_AVAILABLE if made else ErrorCode.INVALID_REPLICATION_FACTOR
    if not allowed:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _creation_error(cluster, name, now_ms, take)


def _creation_error(cluster: Cluster, name: str, now_ms: int, take: Take | None) -> ErrorCode:
    refusal = None
    if name in COORDINATED_TOPICS:
        if not cluster.ensure_internal_topic(name, now_ms):
            refusal = ErrorCode.INVALID_REPLICATION_FACTOR
    else:
        defaults = cluster.defaults
        create = partial(
            cluster.create_topic,
            name,
            partition_count=defaults.num_partitions,
            replication_factor=defaults.replication_factor,
            now_ms=now_ms,
        )
        made: Topic | Refusal | None = None
        if take is not None:
            checked = create(validate_only=True)
            made = checked if isinstance(checked, Refusal) else take(len(checked.partitions))
        if made is None:
            made = create()
        if isinstance(made, Refusal):
            refusal = made.error
    if not cluster.behavior.auto_creation_returns_leader_not_available:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refusal or ErrorCode.LEADER_NOT_AVAILABLE


def save_if_possible(cluster: Cluster) -> None:
    """Save the topics that a request has created without a response that reports them; those that can't be are undone.

    The client's next request creates them again.
    """
    if cluster.unsaved:
        with suppress(TopicsNotStored):
            cluster.save()
