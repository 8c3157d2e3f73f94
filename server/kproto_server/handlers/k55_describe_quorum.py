"""DescribeQuorum (API key 55): the leader and the voters of the controllers' log, for Admin clients (KIP-595, KIP-836).

Each node of kproto is a broker and a voter, as with ``process.roles=broker,controller`` on all nodes of a real cluster;
its leader is the cluster's controller. There is no log of the controllers: its end is the number of changes of the
cluster, and voters that are alive have all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from kproto.records.partitioning import CLUSTER_METADATA_TOPIC
from kproto_server.handlers._raft_voters import LISTENER

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext

NODES_SINCE = 2
"""The first version whose response has the addresses of the voters."""
NOT_HOSTED = "This server does not host this topic-partition."


def handle(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    if [(topic.topic_name, [one.partition_index for one in topic.partitions]) for topic in request.topics] != [
        (CLUSTER_METADATA_TOPIC, [0])
    ]:
        return _not_hosted(request)
    cluster = context.cluster
    end = cluster.version
    voters = cluster.counted_nodes()
    partition = DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_code=ErrorCode.NONE,
        leader_id=cluster.controller_id,
        leader_epoch=cluster.controller_epoch,
        high_watermark=end,
        current_voters=tuple(_voter(node.node_id, end, context.now_ms if node.alive else None) for node in voters),
        observers=(),
    )
    return DescribeQuorumResponse(
        error_code=ErrorCode.NONE,
        topics=(DescribeQuorumResponseTopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=(partition,)),),
        nodes=tuple(
            Node(node_id=node.node_id, listeners=(Listener(name=LISTENER, host=node.host, port=node.port),))
            for node in (voters if context.api_version >= NODES_SINCE else ())
        ),
    )


def _voter(node_id: int, end: int, fetched_ms: int | None) -> ReplicaState:
    """Return a voter that fetched the whole log at ``fetched_ms``; None: it has stopped, and its end is unknown."""
    if fetched_ms is None:
        return ReplicaState(replica_id=node_id, log_end_offset=-1)
    return ReplicaState(
        replica_id=node_id, log_end_offset=end, last_fetch_timestamp=fetched_ms, last_caught_up_timestamp=fetched_ms
    )


def _not_hosted(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Return the response to a request for anything else than the partition of the metadata topic, once: each partition
    has an error (measured on 3.3.2, 3.9.2 and 4.4.0)."""
    return DescribeQuorumResponse(
        error_code=ErrorCode.NONE,
        topics=tuple(
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=tuple(
                    DescribeQuorumResponsePartitionData(
                        partition_index=one.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=NOT_HOSTED,
                        leader_id=0,
                        leader_epoch=0,
                        high_watermark=0,
                        current_voters=(),
                        observers=(),
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
