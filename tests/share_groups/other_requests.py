"""Requests of other group APIs that name one group, whatever its kind is."""

from __future__ import annotations

from kproto.message import Request
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k14_sync_group import SyncGroupRequest
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest


def other_requests(group_id: str, topic: str) -> list[tuple[Request, int]]:
    """Return the requests with their versions."""
    committed = OffsetCommitRequestTopic(
        name=topic,
        partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=""),),
    )
    fetched = OffsetFetchRequestGroup(
        group_id=group_id, topics=(OffsetFetchRequestTopics(name=topic, partition_indexes=(0,)),)
    )
    deleted = OffsetDeleteRequestTopic(name=topic, partitions=(OffsetDeleteRequestPartition(partition_index=0),))
    joined = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="p", metadata=b""),),
    )
    return [
        (ConsumerGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False), 1),
        (
            ConsumerGroupHeartbeatRequest(
                group_id=group_id,
                member_id="C",
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=(topic,),
                topic_partitions=(),
            ),
            1,
        ),
        (OffsetCommitRequest(group_id=group_id, topics=(committed,)), 9),
        (
            OffsetCommitRequest(group_id=group_id, member_id="A", generation_id_or_member_epoch=1, topics=(committed,)),
            9,
        ),
        (OffsetFetchRequest(groups=(fetched,)), 9),
        (OffsetFetchRequest(groups=(fetched.replace(member_id="A", member_epoch=1),)), 9),
        (OffsetDeleteRequest(group_id=group_id, topics=(deleted,)), 0),
        (joined, 9),
        (joined.replace(member_id="A"), 9),
        (HeartbeatRequest(group_id=group_id, generation_id=1, member_id="A"), 4),
        (SyncGroupRequest(group_id=group_id, generation_id=1, member_id="A", assignments=()), 5),
        (LeaveGroupRequest(group_id=group_id, members=(MemberIdentity(member_id="A"),)), 5),
        (DescribeGroupsRequest(groups=(group_id,)), 6),
    ]
