"""Strings that are not UTF-8: a real broker accepts them and replaces what is malformed, in responses and records too.

Method. ``@@@@@@`` in encoded requests is replaced by malformed bytes. The expected texts were measured on 0.10.2.2,
2.8.2 and 4.4.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.headers import read_response, request_frame
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from tests.coordinator.broker_state import NOW_MS
from tests.requests.connections import frames, new_connection, receive

if TYPE_CHECKING:
    from kproto.message import Request
    from kproto_server.connection.connection import Connection

GIVEN = "@@@@@@"
MALFORMED = bytes.fromhex("ffc328eda080")
REPLACED = "\ufffd\ufffd(\ufffd"
INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION = 42, 3, 17


def ask(connection: Connection, request: Request, version: int, client_id: str = "c") -> Any:
    frame = request_frame(request, version, correlation_id=7, client_id=client_id)
    responses = receive(connection, frame.replace(GIVEN.encode(), MALFORMED))
    (response,) = responses or frames(connection.resume(NOW_MS))
    return read_response(response, type(request)._api_key, version)[1]


def commit(topic: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=GIVEN)
    return OffsetCommitRequest(group_id=GIVEN, topics=(OffsetCommitRequestTopic(name=topic, partitions=(partition,)),))


@pytest.mark.parametrize("version", range(1, 10))
def test_a_client_id_that_is_not_utf_8_is_served(version: int) -> None:
    assert ask(new_connection(), MetadataRequest(topics=()), version, client_id=GIVEN).brokers


@pytest.mark.parametrize("version", range(2, 10))
def test_a_commit_with_malformed_group_and_metadata_is_found_again(version: int) -> None:
    """The group is the same for every malformed name of the same length and kind, as in a real broker."""
    connection = new_connection()
    for _ in range(3):  # the commit cache must not learn such a frame
        assert ask(connection, commit("t"), version).topics[0].partitions[0].error_code == 0
    group = OffsetFetchRequestGroup(group_id=GIVEN, topics=None)
    (fetched,) = ask(connection, OffsetFetchRequest(groups=(group,)), 8).groups
    assert fetched.group_id == REPLACED
    assert fetched.topics[0].partitions[0][1:4] == (5, -1, REPLACED)


def test_malformed_names_in_responses() -> None:
    connection = new_connection()
    assert ask(connection, commit(GIVEN), 2).topics[0].name == REPLACED
    topic = ask(connection, MetadataRequest(topics=(MetadataRequestTopic(name=GIVEN),)), 1).topics[0]
    assert (topic.name, topic.error_code) == (REPLACED, INVALID_TOPIC_EXCEPTION)
    join = JoinGroupRequest(
        group_id=GIVEN,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type=GIVEN,
        protocols=(JoinGroupRequestProtocol(name=GIVEN, metadata=MALFORMED),),
    )
    joining = new_connection("0.10.2")  # without an initial rebalance delay
    joined = ask(joining, join, 1, client_id=GIVEN)
    assert joined.protocol_name == REPLACED
    assert joined.leader.startswith(f"{REPLACED}-")
    assert joined.members[0].metadata == MALFORMED
    group = ask(joining, DescribeGroupsRequest(groups=(GIVEN,)), 0).groups[0]
    assert (group.group_id, group.protocol_type, group.members[0].client_id) == (REPLACED,) * 3
    assert ask(joining, ListGroupsRequest(), 0).groups[0][:2] == (REPLACED, REPLACED)


def test_a_malformed_software_name_is_refused() -> None:
    request = ApiVersionsRequest(client_software_name=GIVEN, client_software_version="1")
    assert ask(new_connection(), request, 3).error_code == INVALID_REQUEST
