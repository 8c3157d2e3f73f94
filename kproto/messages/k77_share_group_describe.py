"""ShareGroupDescribe (API key 77): state and members of share groups."""

from __future__ import annotations

from kproto.declaration import Array, Bool, Int16, Int32, NullableString, String, Struct, Uuid
from kproto.message import Request, Response


class ShareGroupDescribeRequest(Request, api_key=77, versions=(1, 1), flexible=0):
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
    rack_id: NullableString = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: Array[String]
    assignment: Assignment


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


class ShareGroupDescribeResponse(Response, api_key=77, versions=(1, 1), flexible=0, has_slices=True):
    throttle_time_ms: Int32
    groups: Array[DescribedGroup]
