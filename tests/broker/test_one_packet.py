"""Requests in one packet: the first creates the offsets topic, the next appends to it before the topics are saved."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from kproto.headers import read_response
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto_server import Broker
from kproto_server.configuration.data_directory import DataDirectory
from tests.coordinator.broker_state import commit_request
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, committed, create_topic

if TYPE_CHECKING:
    from pathlib import Path

    from kproto.message import Request

    Packet = list[tuple[Request, int]]

TOPIC = "__consumer_offsets"
SETTINGS = {"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
GROUPS = ("g", "h", "i", "j")
"""Their offsets partitions are all three."""


def creates(name: str, partition_count: int) -> Request:
    topic = CreatableTopic(name=name, num_partitions=partition_count, replication_factor=1, assignments=(), configs=())
    return CreateTopicsRequest(topics=(topic,), timeout_ms=1000)


def deletes(name: str) -> Request:
    return DeleteTopicsRequest(topic_names=(name,), timeout_ms=1000)


def joins(group_id: str) -> Request:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        group_instance_id="i",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )


COORDINATOR = (FindCoordinatorRequest(key="g"), 0)
CREATORS: dict[str, Packet] = {
    "FindCoordinator": [COORDINATOR],
    "FindCoordinator v4": [(FindCoordinatorRequest(key_type=0, coordinator_keys=("g", "h")), 4)],
    "Metadata": [(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 1)],
    "CreateTopics": [(creates(TOPIC, 3), 2)],
    "CreatePartitions": [
        (creates(TOPIC, 1), 2),
        (
            CreatePartitionsRequest(
                topics=(CreatePartitionsTopic(name=TOPIC, count=3, assignments=None),),
                timeout_ms=1000,
                validate_only=False,
            ),
            0,
        ),
    ],
    "DeleteTopics": [
        COORDINATOR,
        *((commit_request(group_id, {"t": {0: 1}}), 2) for group_id in GROUPS),
        (deletes(TOPIC), 1),
        COORDINATOR,
    ],
}
"""Requests after which the offsets topic exists, and is not saved yet."""
OFFSETS = OffsetDeleteRequest(
    group_id="g",
    topics=(OffsetDeleteRequestTopic(name="t", partitions=(OffsetDeleteRequestPartition(partition_index=0),)),),
)
COMMITS: Packet = [(commit_request(group_id, {"t": {0: 7}}), 2) for group_id in GROUPS[:3]]
APPENDERS: dict[str, Packet] = {
    "OffsetCommit": COMMITS,
    "OffsetCommit v8": [(commit_request("g", {"t": {0: 7}}), 8), (commit_request("g", {"t": {0: 8}}), 8)],
    "OffsetCommit v0": [(commit_request("g", {"t": {0: 7}}), 0), (commit_request("g", {"t": {0: 8}}), 2)],
    "JoinGroup": [(joins("g"), 5)],
    "LeaveGroup": [
        (joins("g"), 5),
        (LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="", group_instance_id="i"),)), 3),
    ],
    "OffsetDelete": [*COMMITS, (OFFSETS, 0)],
    "DeleteGroups": [*COMMITS, (DeleteGroupsRequest(groups_names=("g", "h")), 0)],
    "DeleteTopics": [*COMMITS, (deletes("t"), 1)],
    "CreateTopics": [*COMMITS, (deletes("t"), 1), (creates("t", 1), 2), (commit_request("g", {"t": {0: 9}}), 2)],
}
"""Requests that append to the offsets topic."""


def outcome(data: DataDirectory | None, packet: Packet) -> tuple[list[list[str]], list[int]]:
    """Send a packet to a new broker; return the error codes of each response, and the groups' offsets after it."""
    with Broker.running(data=data, settings=SETTINGS) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client)
        client.send(*packet)
        responses = [read_response(client.read_frame(), type(request), version)[1] for request, version in packet]
        errors = [re.findall(r"error_code=[^,)]+", repr(response)) for response in responses]
        return errors, offsets(client)


def offsets(client: RawClient) -> list[int]:
    return [committed(client, group_id) for group_id in GROUPS] + [committed(client, version=0)]


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("creator", CREATORS)
@pytest.mark.parametrize("appender", APPENDERS)
def test_the_offsets_topic_is_created_and_appended_to_in_one_packet(
    creator: str, appender: str, durability: str, tmp_path: Path
) -> None:
    """The responses are those of a broker in memory, and a restart has the same offsets."""
    packet = CREATORS[creator] + APPENDERS[appender]
    data = DataDirectory(str(tmp_path), "os" if durability == "os" else "fsync")
    errors, found = outcome(data, packet)
    assert (errors, found) == outcome(None, packet)
    with Broker.running(data=data, settings=SETTINGS) as broker, RawClient(broker.bootstrap_servers) as client:
        assert offsets(client) == found


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_commit_fails_while_its_log_cannot_be_created(durability: str, tmp_path: Path) -> None:
    """The response is an error, as of any failed write; once the log can be created, commits succeed."""
    data = DataDirectory(str(tmp_path), "os" if durability == "os" else "fsync")
    in_the_way = [tmp_path / f"{TOPIC}-{number}" for number in range(3)]
    with Broker.running(data=data, settings=SETTINGS) as broker, RawClient(broker.bootstrap_servers) as client:
        for path in in_the_way:
            path.write_bytes(b"")
        assert commit_offset(client) == 16
        for path in in_the_way:
            path.unlink()
        assert commit_offset(client) == 0
