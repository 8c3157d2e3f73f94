"""What differs in two responses, and what varies by nature."""

from __future__ import annotations

from typing import Any

from kproto.codes import ErrorCode
from kproto.headers import read_request_header
from kproto.message import Request, Response
from kproto.messages.k00_produce import PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse
from kproto.messages.k03_metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.messages.k11_join_group import JoinGroupResponse
from kproto.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kproto.messages.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kproto_server.comparison import VARIES_BY_RUN, comparable, differences
from kproto_server.replay.conversations import Exchange
from kproto_server.replay.differing import OTHER_LAYOUT, response_rows
from tests.proxy.exchanged import asked, response

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def rows(
    request: Request, version: int, one: Response, other: Response, versions: tuple[int, int] | None = None
) -> Any:
    frame = asked(request, version)[4:]
    exchange = Exchange(1, frame, read_request_header(frame), has_response=True)
    return response_rows(
        exchange, *(response(each, at)[4:] for each, at in zip((one, other), versions or (version,) * 2, strict=True))
    )


def cluster(*partitions: MetadataResponsePartition, host: str = "a", name: str = "t") -> MetadataResponse:
    topic = MetadataResponseTopic(
        error_code=0, name=name, topic_id=host.encode() * 16, is_internal=False, partitions=partitions
    )
    broker = MetadataResponseBroker(node_id=ord(host), host=host, port=ord(host))
    return MetadataResponse(brokers=(broker,), cluster_id=host, controller_id=ord(host), topics=(topic,))


def partition(index: int, error: int = 0, leader: int = 1) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=error, partition_index=index, leader_id=leader, replica_nodes=(leader,), isr_nodes=(leader,)
    )


def test_addresses_ids_and_orders_vary_by_nature() -> None:
    one, other = cluster(partition(0), partition(1)), cluster(partition(1, leader=2), partition(0, leader=2), host="b")
    assert rows(MetadataRequest(topics=None), 12, one, other) == ()


def test_brokers_send_the_partitions_of_a_produce_response_in_any_order() -> None:
    def produced(*indexes: int) -> ProduceResponse:
        partitions = tuple(PartitionProduceResponse(index=index, base_offset=7, error_code=0) for index in indexes)
        return ProduceResponse(responses=(TopicProduceResponse(name="t", partition_responses=partitions),))

    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=())
    assert rows(request, 9, produced(0, 1), produced(1, 0)) == ()


def test_members_and_generations_vary_by_nature() -> None:
    def joined(member_id: str, generation_id: int) -> JoinGroupResponse:
        return JoinGroupResponse(
            error_code=0, generation_id=generation_id, protocol_name="range", leader=member_id, member_id=member_id,
            members=(),
        )  # fmt: skip

    one, other = (comparable(joined(*each), str, VARIES_BY_RUN) for each in (("a", 1), ("b", 2)))
    assert list(differences(one, other)) == []


def test_fields_that_differ_have_their_path_and_the_names_of_errors() -> None:
    one, other = cluster(partition(0), partition(1)), cluster(partition(1, error=9), partition(0), name="t")
    assert rows(MetadataRequest(topics=None), 12, one, other) == (
        ("topics[0].partitions[1].error_code", "0", "REPLICA_NOT_AVAILABLE"),
    )
    fewer = rows(MetadataRequest(topics=None), 12, one, cluster(partition(0)))
    assert [row[0] for row in fewer] == ["topics[0].partitions"]
    unknown, other_code = (HeartbeatResponse(error_code=code) for code in (ErrorCode.UNKNOWN_MEMBER_ID, 9999))
    assert rows(HEARTBEAT, 4, unknown, other_code) == (("error_code", "UNKNOWN_MEMBER_ID", "9999"),)


def test_versions_that_differ_are_named() -> None:
    def offered(newest: int) -> ApiVersionsResponse:
        return ApiVersionsResponse(error_code=0, api_keys=(ApiVersion(api_key=3, min_version=0, max_version=newest),))

    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert rows(request, 3, offered(12), offered(13)) == (("api_keys[0]", "3:0-12", "3:0-13"),)
    more = offered(13).replace(api_keys=(*offered(13).api_keys, ApiVersion(api_key=4, min_version=0, max_version=1)))
    assert rows(request, 3, offered(12), more) == (("api_keys", "['3:0-12']", "['3:0-13', '4:0-1']"),)
    assert rows(request, 3, offered(13), more) == (("api_keys", "[]", "['4:0-1']"),)
    refused = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=())
    assert rows(request, 3, refused, refused, (0, 0)) == ()


def test_a_response_in_another_layout_differs() -> None:
    one = HeartbeatResponse(error_code=0)
    assert rows(HEARTBEAT, 4, one, cluster(), (4, 12)) == (("", "", OTHER_LAYOUT),)
