"""The cases for a broker under test: requests as data, sent in each version that the broker offers.

What a release responds is recorded from real brokers (`broker_expectations`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k14_sync_group import SyncGroupRequest
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto_server.conformance.broker_case import GUIDE, BrokerCase
from kproto_server.conformance.record_cases import RECORD_CASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.message import Request
    from kproto_server.conformance.broker_case import Names

API_VERSIONS = "api-versions"
METADATA_BYTES_MAX = 4096
"""A broker's offset.metadata.max.bytes."""


def _commit(
    names: Names, version: int, *, topic: str = "", member: str = "", generation: int = -1, metadata: str = "m"
) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata=metadata)
    identity = (
        OffsetCommitRequestTopic(topic_id=names.topic_id, partitions=(partition,))
        if version >= 10 and not topic
        else OffsetCommitRequestTopic(name=topic or names.topic, partitions=(partition,))
    )
    return OffsetCommitRequest(
        group_id=names.group, generation_id_or_member_epoch=generation, member_id=member, topics=(identity,)
    )


def _offsets(names: Names, version: int) -> OffsetFetchRequest:
    if version < 8:
        topic = OffsetFetchRequestTopic(name=names.topic, partition_indexes=(0,))
        return OffsetFetchRequest(group_id=names.group, topics=(topic,))
    named = (
        OffsetFetchRequestTopics(topic_id=names.topic_id, partition_indexes=(0,))
        if version >= 10
        else OffsetFetchRequestTopics(name=names.topic, partition_indexes=(0,))
    )
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=names.group, topics=(named,)),))


def _coordinator(key_type: int) -> Callable[[Names, int], Request]:
    def request(names: Names, version: int) -> Request:
        if version < 4:
            return FindCoordinatorRequest(key=names.group, key_type=key_type)
        return FindCoordinatorRequest(coordinator_keys=(names.group,), key_type=key_type)

    return request


def _join(names: Names, member: str, session_ms: int, protocol_type: str = "consumer") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=names.group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=10_000,
        member_id=member,
        protocol_type=protocol_type,
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )


def _leave(names: Names, version: int) -> Request:
    if version < 3:
        return LeaveGroupRequest(group_id=names.group, member_id="stranger")
    return LeaveGroupRequest(group_id=names.group, members=(MemberIdentity(member_id="stranger"),))


def _list(topic: str, timestamp: int) -> Request:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(partition,)),))


def _fetch(names: Names, version: int, offset: int) -> Request:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = (
        FetchTopic(topic_id=names.topic_id, partitions=(partition,))
        if version >= 13
        else FetchTopic(topic=names.topic, partitions=(partition,))
    )
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))


def _create(names: Names, version: int) -> Request:
    topic = CreatableTopic(name=names.topic, num_partitions=1, replication_factor=1, assignments=(), configs=())
    return CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)


def _delete_topic(names: Names, version: int) -> Request:
    if version < 6:
        return DeleteTopicsRequest(topic_names=(names.missing,), timeout_ms=10_000)
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=names.missing, topic_id=bytes(16)),), timeout_ms=10_000)


def _about_topics(topics: tuple[str, ...] | None) -> Request:
    named = None if topics is None else tuple(MetadataRequestTopic(name=topic) for topic in topics)
    return MetadataRequest(topics=named, allow_auto_topic_creation=False)


_ALL = (
    BrokerCase(
        API_VERSIONS,
        "ApiVersions in each version: which versions of which APIs are offered.",
        "KIP-35",
        "BA-20",
        lambda names, version: ApiVersionsRequest(client_software_name="kproto", client_software_version="1"),
        18,
    ),
    BrokerCase(
        "api-versions-unknown-version",
        "ApiVersions in version 99.",
        "KIP-511: the response has version 0 and UNSUPPORTED_VERSION",
        "BA-21",
        data=bytes.fromhex("0000000f 0012 0063 00000007 0004 74657374 00"),
    ),
    BrokerCase(
        "api-versions-bad-name",
        "ApiVersions in version 3 with an empty software name.",
        "KIP-511: INVALID_REQUEST",
        "BA-22",
        lambda names, version: ApiVersionsRequest(),
        18,
        first_version=3,
    ),
    BrokerCase(
        "unknown-api-key",
        "A request with the API key 999.",
        f"{GUIDE}: a request that cannot be parsed closes the connection",
        "BA-6",
        data=bytes.fromhex("0000000e 03e7 0000 00000007 0004 74657374"),
        is_hostile=True,
    ),
    BrokerCase(
        "unknown-version",
        "Metadata in version 99.",
        f"{GUIDE}: a request that cannot be parsed closes the connection",
        "BA-6",
        data=bytes.fromhex("0000000e 0003 0063 00000007 0004 74657374"),
        is_hostile=True,
    ),
    BrokerCase(
        "malformed-body",
        "FindCoordinator in version 1 without its body.",
        f"{GUIDE}: a request that cannot be parsed closes the connection",
        "BA-6",
        data=bytes.fromhex("0000000e 000a 0001 00000007 0004 74657374"),
        is_hostile=True,
    ),
    BrokerCase(
        "huge-array",
        "OffsetFetch in version 1 with an array of two thousand million topics.",
        f"{GUIDE}: a request that cannot be parsed closes the connection",
        "BA-6",
        data=bytes.fromhex("00000015 0009 0001 00000007 0004 74657374 0001 67 77359400"),
        is_hostile=True,
    ),
    BrokerCase(
        "negative-size",
        "A frame with the size -1.",
        f"{GUIDE}: the connection is closed",
        "BA-1",
        data=bytes.fromhex("ffffffff 0012 0000"),
        is_hostile=True,
    ),
    BrokerCase(
        "too-large-size",
        "A frame that announces 2147483647 bytes.",
        "socket.request.max.bytes: the connection is closed",
        "BA-1",
        data=bytes.fromhex("7fffffff 0012 0000"),
        is_hostile=True,
    ),
    BrokerCase(
        "metadata-unknown-topic",
        "Metadata of a topic that does not exist.",
        f"{GUIDE}: UNKNOWN_TOPIC_OR_PARTITION",
        "BA-32",
        lambda names, version: _about_topics((names.missing,)),
        3,
        first_version=4,
    ),
    BrokerCase(
        "metadata-topic",
        "Metadata of a topic.",
        GUIDE,
        "BA-31",
        lambda names, version: _about_topics((names.topic,)),
        3,
        first_version=4,
    ),
    BrokerCase(
        "metadata-no-topics",
        "Metadata with an empty array of topics.",
        f"{GUIDE}: no topics",
        "BA-30",
        lambda names, version: _about_topics(()),
        3,
        first_version=4,
    ),
    BrokerCase("find-coordinator-group", "FindCoordinator of a group.", GUIDE, "BA-44", _coordinator(0), 10),
    BrokerCase(
        "find-coordinator-unknown-type",
        "FindCoordinator with the key type 9.",
        f"{GUIDE}: INVALID_REQUEST",
        "BA-43",
        _coordinator(9),
        10,
        first_version=1,
    ),
    BrokerCase("offset-commit", "OffsetCommit without a member.", GUIDE, "OC-21", _commit, 8, first_version=1),
    BrokerCase(
        "offset-commit-unknown-topic",
        "OffsetCommit of a topic that does not exist.",
        f"{GUIDE}: UNKNOWN_TOPIC_OR_PARTITION",
        "OC-10",
        lambda names, version: _commit(names, min(version, 9), topic=names.missing),
        8,
        first_version=1,
    ),
    BrokerCase(
        "offset-commit-unknown-member",
        "OffsetCommit of a member of a group that does not exist.",
        f"{GUIDE}: ILLEGAL_GENERATION",
        "OC-21",
        lambda names, version: _commit(names, version, member="stranger", generation=3),
        8,
        first_version=1,
    ),
    BrokerCase(
        "offset-commit-large-metadata",
        f"OffsetCommit with metadata of {METADATA_BYTES_MAX + 1} bytes.",
        f"{GUIDE}: OFFSET_METADATA_TOO_LARGE",
        "OC-30",
        lambda names, version: _commit(names, version, metadata="m" * (METADATA_BYTES_MAX + 1)),
        8,
        first_version=1,
    ),
    BrokerCase(
        "offset-fetch-nothing",
        "OffsetFetch of a group that does not exist.",
        GUIDE,
        "OF-10",
        _offsets,
        9,
        first_version=1,
    ),
    BrokerCase(
        "offset-fetch-committed",
        "OffsetFetch of what an OffsetCommit in version 2 committed.",
        GUIDE,
        "OF-15",
        _offsets,
        9,
        before=lambda names: (_commit(names, 2), 2),
        first_version=1,
    ),
    BrokerCase(
        "join-unknown-member",
        "JoinGroup with a member id that the broker has not given.",
        f"{GUIDE}: UNKNOWN_MEMBER_ID",
        "GP-10",
        lambda names, version: _join(names, "stranger", 10_000),
        11,
    ),
    BrokerCase(
        "join-session-timeout",
        "JoinGroup with a session timeout of 1 ms.",
        f"{GUIDE}: INVALID_SESSION_TIMEOUT",
        "GP-10",
        lambda names, version: _join(names, "", 1),
        11,
    ),
    BrokerCase(
        "sync-unknown-group",
        "SyncGroup in a group that does not exist.",
        f"{GUIDE}: UNKNOWN_MEMBER_ID",
        "GP-30",
        lambda names, version: SyncGroupRequest(
            group_id=names.group,
            generation_id=1,
            member_id="stranger",
            protocol_type="consumer",
            protocol_name="range",
            assignments=(),
        ),
        14,
    ),
    BrokerCase(
        "heartbeat-unknown-group",
        "Heartbeat in a group that does not exist.",
        f"{GUIDE}: UNKNOWN_MEMBER_ID",
        "GP-35",
        lambda names, version: HeartbeatRequest(group_id=names.group, generation_id=1, member_id="stranger"),
        12,
    ),
    BrokerCase(
        "leave-unknown-group",
        "LeaveGroup in a group that does not exist.",
        f"{GUIDE}: UNKNOWN_MEMBER_ID",
        "GP-36",
        _leave,
        13,
    ),
    BrokerCase(
        "list-offsets-latest",
        "ListOffsets of the end of an empty partition.",
        GUIDE,
        "BA-80",
        lambda names, version: _list(names.topic, -1),
        2,
        first_version=1,
    ),
    BrokerCase(
        "list-offsets-unknown-topic",
        "ListOffsets of a topic that does not exist.",
        f"{GUIDE}: UNKNOWN_TOPIC_OR_PARTITION",
        "BA-83",
        lambda names, version: _list(names.missing, -1),
        2,
        first_version=1,
    ),
    BrokerCase(
        "fetch-empty",
        "Fetch of an empty partition.",
        GUIDE,
        "BA-74",
        lambda names, version: _fetch(names, version, 0),
        1,
    ),
    BrokerCase(
        "fetch-out-of-range",
        "Fetch from offset 5 of an empty partition.",
        f"{GUIDE}: OFFSET_OUT_OF_RANGE",
        "BA-74",
        lambda names, version: _fetch(names, version, 5),
        1,
    ),
    BrokerCase(
        "describe-groups-unknown",
        "DescribeGroups of a group that does not exist.",
        f"{GUIDE}: the state Dead, from v6 on GROUP_ID_NOT_FOUND",
        "GP-40",
        lambda names, version: DescribeGroupsRequest(groups=(names.group,)),
        15,
    ),
    BrokerCase(
        "delete-groups-unknown",
        "DeleteGroups of a group that does not exist.",
        f"{GUIDE}: GROUP_ID_NOT_FOUND",
        "EX-61",
        lambda names, version: DeleteGroupsRequest(groups_names=(names.group,)),
        42,
    ),
    BrokerCase(
        "create-topics-existing",
        "CreateTopics of a topic that exists.",
        f"{GUIDE}: TOPIC_ALREADY_EXISTS",
        "BA-90",
        _create,
        19,
    ),
    BrokerCase(
        "create-partitions-fewer",
        "CreatePartitions of as many partitions as a topic has.",
        f"{GUIDE}: INVALID_PARTITIONS",
        "BA-91",
        lambda names, version: CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name=names.topic, count=1, assignments=None),),
            timeout_ms=10_000,
            validate_only=False,
        ),
        37,
    ),
    BrokerCase(
        "delete-topics-unknown",
        "DeleteTopics of a topic that does not exist.",
        f"{GUIDE}: UNKNOWN_TOPIC_OR_PARTITION",
        "BA-91",
        _delete_topic,
        20,
    ),
)
BROKER_CASES = {case.name: case for case in sorted((*_ALL, *RECORD_CASES), key=lambda case: case.is_hostile)}
"""By name. The hostile frames come last."""
