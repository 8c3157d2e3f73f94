"""ConsumerGroupDescribe (API key 69): state and members of groups of the KIP-848 protocol."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int8, Int16, Int32, NullableString, String, Struct, Uuid, ignorable, since
from kproto.message import Request, Response


class ConsumerGroupDescribeRequest(Request, api_key=69, versions=(0, 1), flexible=0):
    """v1: layout of v0."""

    group_ids: Array[String]
    include_authorized_operations: Bool


class TopicPartitions(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: Array[Int32]


class Assignment(Struct):
    topic_partitions: Array[TopicPartitions]


class Member(Struct):
    member_id: String
    instance_id: NullableString = None
    rack_id: NullableString = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: Array[String]
    subscribed_topic_regex: NullableString = None
    assignment: Assignment
    target_assignment: Assignment
    member_type: Annotated[Int8, since(1), ignorable] = -1
    """-1: unknown; 0: of the classic protocol; 1: of KIP-848."""


class DescribedGroup(Struct):
    error_code: Int16
    error_message: NullableString = None
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: String
    members: Array[Member]
    authorized_operations: Int32 = -2147483648
    """Bit n is ACL operation n; -2147483648 if the request does not ask for it."""


class ConsumerGroupDescribeResponse(Response, api_key=69, versions=(0, 1), flexible=0, has_slices=True):
    """v1: + groups[].members[].member_type."""

    throttle_time_ms: Int32
    groups: Array[DescribedGroup]
