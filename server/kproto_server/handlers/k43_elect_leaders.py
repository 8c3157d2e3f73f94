"""ElectLeaders (API key 43): elect the preferred leaders of partitions, or leaders out of sync (KIP-183, KIP-460).

Source:
    Responses of 2.8.2, 3.9.2 and 4.4.0 to the same requests. If the request names no partitions, ZooKeeper clusters
    leave out partitions that need no election, and KRaft clusters return their topics without partitions.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k43_elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from kproto_server.cluster.topics import NO_LEADER, Refusal
from kproto_server.deferred import LargeResponse, in_slices
from kproto_server.handlers._controller import not_controller
from kproto_server.observation.error_codes import error_codes
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from kproto.messages.k43_elect_leaders import ElectLeadersRequest
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Partition
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext

Results = list[tuple[str, list[tuple[int, Refusal]]]]

PARTITIONS_OF_TOPIC = 4
"""Partitions that take as long as a topic."""

PREFERRED, UNCLEAN = 0, 1
"""Election types: the first replica, or any live replica of a partition without a leader."""


SLICE_TOPICS = 1000
"""Topics with few partitions that are gone through, or returned, at once if the request names none: about 10 ms."""


class ElectLeadersBehavior(VersionBehavior):
    """What Kafka releases do differently in ElectLeaders (measured on 2.2.2, 2.3.1, 2.4.1, 2.5.1 and 2.6.3)."""

    @cached_property
    def not_needed(self) -> Refusal:
        """The result of a partition that has its preferred leader, or any leader."""
        error = ErrorCode.ELECTION_NOT_NEEDED
        if not self.at_least(2, 4):
            return Refusal(ErrorCode.NONE, None)
        return Refusal(error, error.message if self.at_least(2, 6) else error.message.removesuffix("."))


def handle(
    request: ElectLeadersRequest, context: RequestContext
) -> ElectLeadersResponse | LargeResponse | DelayedOperation:
    requested = request.topic_partitions
    error = _error(request.election_type, context)
    if error is not None:
        refused = [(topic.topic, [(index, error) for index in topic.partitions]) for topic in requested or ()]
        return _response(context, error.error, refused)
    if requested is None:
        return in_slices(_elect_all(request.election_type, context), context.now_ms)
    return _response(context, ErrorCode.NONE, _elected(requested, request.election_type, context))


def _elect_all(
    election_type: int, context: RequestContext
) -> Generator[None, None, ElectLeadersResponse | LargeResponse]:
    cluster, is_kraft, results = context.cluster, context.kafka_version.is_kraft, Results()
    left = SLICE_TOPICS
    for name, topic in list(cluster.topics.items()):
        left -= 1 + len(topic.partitions) // PARTITIONS_OF_TOPIC
        if left < 0:
            left = SLICE_TOPICS
            yield
        every = TopicPartitions(topic=name, partitions=tuple(range(len(topic.partitions))))
        found = [
            (index, refusal)
            for _, partitions in _elected((every,), election_type, context)
            for index, refusal in partitions
            if refusal.error is not ErrorCode.ELECTION_NOT_NEEDED
        ]
        if found or is_kraft:
            results.append((name, found))
    response = _response(context, ErrorCode.NONE, results)
    return response if len(results) <= SLICE_TOPICS else LargeResponse(response, error_codes(response))


def _error(election_type: int, context: RequestContext) -> Refusal | None:
    """Return the error of the whole request."""
    if election_type in (PREFERRED, UNCLEAN):
        return None
    if not context.kafka_version.is_kraft:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown election type {election_type}")


def _elected(requested: Sequence[TopicPartitions], election_type: int, context: RequestContext) -> Results:
    results: Results = [
        (topic.topic, [(index, _elect(topic.topic, index, election_type, context)) for index in topic.partitions])
        for topic in requested
    ]
    if context.kafka_version.is_kraft:
        return results
    by_topic: dict[str, dict[int, Refusal]] = {}
    for name, found in results:
        by_topic.setdefault(name, {}).update(found)
    return [(name, list(partitions.items())) for name, partitions in by_topic.items()]


def _elect(name: str, index: int, election_type: int, context: RequestContext) -> Refusal:
    """Elect the leader of one partition; the error of a success is NONE."""
    if not_controller(context):
        return Refusal(ErrorCode.NOT_CONTROLLER)
    cluster, is_kraft = context.cluster, context.kafka_version.is_kraft
    topic = cluster.topic(name)
    partition = topic.partition(index) if topic else None
    if partition is None:
        missing = f"partition as {name}-{index}" if topic else f"topic as {name}"
        message = f"No such {missing}" if is_kraft else "The partition does not exist."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    error = _elect_preferred(partition, cluster) if election_type == PREFERRED else _elect_any(partition, cluster)
    if error is ErrorCode.ELECTION_NOT_NEEDED:
        return context.behavior(ElectLeadersBehavior).not_needed
    return Refusal(error, error.message if error else None)


def _elect_preferred(partition: Partition, cluster: Cluster) -> ErrorCode:
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        return ErrorCode.ELECTION_NOT_NEEDED
    if preferred not in partition.isr or not cluster.is_alive(preferred):
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    cluster.lead(partition, preferred)
    return ErrorCode.NONE


def _elect_any(partition: Partition, cluster: Cluster) -> ErrorCode:
    if partition.leader != NO_LEADER:
        return ErrorCode.ELECTION_NOT_NEEDED
    alive = next((node for node in partition.replicas if cluster.is_alive(node)), None)
    if alive is None:
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    cluster.lead(partition, alive)
    return ErrorCode.NONE


def _response(context: RequestContext, error: ErrorCode, results: Results) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        throttle_time_ms=0,
        error_code=error if context.api_version else ErrorCode.NONE,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=name,
                partition_result=tuple(
                    PartitionResult(partition_id=index, error_code=found.error, error_message=found.message)
                    for index, found in partitions
                ),
            )
            for name, partitions in results
        ),
    )
