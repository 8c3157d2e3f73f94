"""The parts of a broker without sockets: test data for handlers and for the coordinator."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto_server.cluster.cluster import Cluster, Topic
from kproto_server.configuration.settings import Settings
from kproto_server.coordinator.groups import Group, GroupState, Member
from kproto_server.deferred import LargeResponse
from kproto_server.handlers import handler
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.requests.context import ConnectionInfo, RequestContext
from kproto_server.state import BrokerState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kproto.message import Request
    from kproto_server.clock import Clock

NOW_MS = 1_700_000_000_000


def new_state(
    kafka_version: str = "latest",
    *,
    topics: Mapping[str, int] | None = None,
    settings: Mapping[str, str] | None = None,
    node_count: int = 1,
    with_offsets_topic: bool = True,
    clock: Clock | None = None,
) -> BrokerState:
    """Return a broker's state with these topics (name: partitions); by default "t" with three of them, "u" with one."""
    chosen = KafkaVersion.named(kafka_version)
    given = {"offsets.topic.replication.factor": "1", **(settings or {})}
    # Without the check of user settings: some settings have an effect before they are documented.
    configured = Settings(chosen, given)
    addresses = [("127.0.0.1", 9092 + index) for index in range(node_count)]
    cluster = Cluster.of(addresses, kafka_version=chosen, settings=configured, random_bytes=os.urandom)
    for name, partition_count in (topics or {"t": 3, "u": 1}).items():
        made = cluster.create_topic(name, partition_count=partition_count, replication_factor=1)
        assert isinstance(made, Topic)
    if with_offsets_topic:
        assert cluster.ensure_offsets_topic(NOW_MS)
    return BrokerState(chosen, configured, cluster, clock)


def ask(state: BrokerState, request: Request, version: int, *, node_id: int = 1, now_ms: int = NOW_MS) -> Any:
    """Return a handler's response to a request to a node; one that is made in slices, too."""
    result = handled(state, request, version, node_id=node_id, now_ms=now_ms)
    return result.response if isinstance(result, LargeResponse) else result


def handled(state: BrokerState, request: Request, version: int, *, node_id: int = 1, now_ms: int = NOW_MS) -> Any:
    """Return what a handler returns for a request to a node."""
    api_key = type(request)._api_key
    connection = ConnectionInfo("/127.0.0.1")
    return handler(api_key)(request, request_context(state, node_id, connection, api_key, version, now_ms))


def request_context(
    state: BrokerState, node_id: int, connection: ConnectionInfo, api_key: int, version: int, now_ms: int = NOW_MS
) -> RequestContext:
    """Return the context of a request to a node."""
    node = state.cluster.nodes[node_id]
    parts = state.coordinator, state.cluster, state.settings, state
    return RequestContext(*parts, node, connection, api_key, version, "test", now_ms)


Offsets = dict[str, dict[int, "int | tuple[int, str | None]"]]
"""Topic, partition, and an offset with or without metadata."""


def commit_request(group_id: str, offsets: Offsets, **fields: Any) -> OffsetCommitRequest:
    """Return an OffsetCommit of these offsets; ``fields`` are the request's other fields."""
    return OffsetCommitRequest(
        group_id=group_id,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=name, partitions=tuple(_partition(index, value) for index, value in partitions.items())
            )
            for name, partitions in offsets.items()
        ),
        **fields,
    )


def _partition(index: int, value: int | tuple[int, str | None]) -> OffsetCommitRequestPartition:
    offset, metadata = value if isinstance(value, tuple) else (value, "")
    return OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)


def commit(state: BrokerState, group_id: str, offsets: Offsets, version: int = 5) -> None:
    """Commit without a member id; the commit has to succeed."""
    response = ask(state, commit_request(group_id, offsets), version)
    assert {p.error_code for topic in response.topics for p in topic.partitions} == {0}


def group_with(
    state: BrokerState,
    group_id: str,
    group_state: GroupState,
    members: Iterable[Member] = (),
    *,
    generation: int = 1,
    protocol_type: str | None = "consumer",
) -> Group:
    """Put a classic group into a state by hand, as JoinGroups would."""
    group = state.coordinator.groups.create(group_id, NOW_MS)
    group.protocol_type = protocol_type
    group.protocol_name = "range"
    group.generation = generation
    for member in members:
        group.add_member(member)
    group.transition_to(group_state, NOW_MS)
    return group
