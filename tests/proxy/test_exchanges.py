"""Requests and responses of a proxied connection: what passes unchanged, what is counted, how they are matched.

Method. Frames go through the two directions of a connection without sockets.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import ProduceRequest, ProduceResponse
from kproto.messages.k03_metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k11_join_group import JoinGroupResponse
from kproto.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kproto.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from kproto_server.observation.observe import Observations
from kproto_server.observation.observed import ClientSeen, ClosedSeen, CommitsSeen, ErrorsSeen, RequestsSeen
from kproto_server.proxy.cutting import Cutter
from kproto_server.proxy.exchanges import BEGINNING_BYTES, Exchanges
from tests.proxy.exchanged import OWN_HOST, asked, new_exchanges, raw, response

PRODUCE = ProduceRequest(acks=1, timeout_ms=1, topic_data=())
METADATA = MetadataRequest(topics=None)
BROKER = MetadataResponseBroker(node_id=1, host="b", port=9092)
CLUSTER = MetadataResponse(brokers=(BROKER,), topics=())
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
REBALANCE = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
SOFTWARE = ApiVersionsRequest(client_software_name="my-client", client_software_version="1.2")
RETENTION_MS = 86_400_000


def fed(cutter: Cutter[Any], data: bytes, step: int = 0) -> bytes:
    """Return what goes out for the bytes of one read, or of reads of this size."""
    reads = [data[at : at + step] for at in range(0, len(data), step)] if step else [data]
    return b"".join(piece for read in reads for piece in cutter.feed(read))


def pass_on(exchanges: Exchanges, data: bytes, step: int = 0) -> None:
    """Feed requests, which pass byte for byte."""
    assert fed(exchanges.requests, data, step) == data


def client_of(observations: Observations) -> ClientSeen:
    (client,) = observations.snapshot().clients
    return client


class TestFrames:
    @pytest.mark.parametrize("step", [0, 1, 2, 3, 5, 7, 11, 40])
    def test_reads_may_end_anywhere(self, step: int) -> None:
        observations = Observations()
        exchanges = new_exchanges(observations)
        requests = asked(METADATA, 9, 1) + asked(HEARTBEAT, 4, 2) + asked(METADATA, 1, 3)
        responses = response(CLUSTER, 9, 1) + response(REBALANCE, 4, 2) + response(CLUSTER, 1, 3)
        own = CLUSTER.replace(brokers=(BROKER.replace(host=OWN_HOST, port=10092),))
        pass_on(exchanges, requests, step)
        assert fed(exchanges.responses, responses, step) == (
            response(own, 9, 1) + response(REBALANCE, 4, 2) + response(own, 1, 3)
        )
        assert not exchanges.pending
        client = client_of(observations)
        assert client.requests == (RequestsSeen(3, 1, 1), RequestsSeen(3, 9, 1), RequestsSeen(12, 4, 1))
        assert client.errors == (ErrorsSeen(12, 4, ErrorCode.REBALANCE_IN_PROGRESS, 1),)

    def test_a_large_request_passes_before_it_is_whole(self) -> None:
        observations = Observations()
        exchanges = new_exchanges(observations)
        request = raw(0, 2, body=b"\0\1" + bytes(2 * BEGINNING_BYTES))
        cut = BEGINNING_BYTES + 10
        assert fed(exchanges.requests, request[:cut]) == request[:cut]
        assert len(exchanges.pending) == 1
        assert fed(exchanges.requests, request[cut:] + asked(METADATA, 1, 2)) == request[cut:] + asked(METADATA, 1, 2)
        assert [request.correlation_id for request in exchanges.pending] == [1, 2]
        assert client_of(observations).requests == (RequestsSeen(0, 2, 1), RequestsSeen(3, 1, 1))

    def test_a_response_of_an_unknown_layout_passes_as_it_arrives(self) -> None:
        exchanges = new_exchanges()
        pass_on(exchanges, raw(0x7000, 0, 5))
        frame = b"\0\0\1\0" + b"\0\0\0\5" + bytes(252)
        assert fed(exchanges.responses, frame[:9]) == frame[:9]
        assert fed(exchanges.responses, frame[9:]) == frame[9:]
        assert not exchanges.pending

    @pytest.mark.parametrize("step", [0, 1])
    def test_a_negative_size_ends_the_frames(self, step: int) -> None:
        exchanges = new_exchanges()
        pass_on(exchanges, b"\xff\xff\xff\xff" + asked(METADATA, 1), step)
        assert not exchanges.pending

    def test_bytes_that_are_not_known_may_be_skipped_inside_a_frame(self) -> None:
        observations = Observations()
        exchanges = new_exchanges(observations)
        request, behind = raw(0, 2, body=b"\0\1" + bytes(100)), asked(METADATA, 1, 2)
        cut = 30
        fed(exchanges.requests, request[:cut])
        assert exchanges.requests.skip(50)
        assert exchanges.requests.skip(10)
        fed(exchanges.requests, request[cut + 60 :] + behind)
        assert client_of(observations).requests == (RequestsSeen(0, 2, 1), RequestsSeen(3, 1, 1))

    @pytest.mark.parametrize(("known", "skipped"), [(0, 1), (11, 1), (30, 90), (119, 2)])
    def test_the_next_frame_is_lost_with_its_size(self, known: int, skipped: int) -> None:
        exchanges = new_exchanges()
        request = raw(0, 2, body=b"\0\1" + bytes(100))
        fed(exchanges.requests, request[:known])
        assert not exchanges.requests.skip(skipped + max(0, len(request) - 119))
        pass_on(exchanges, asked(METADATA, 1, 2))
        assert [request.api_key for request in exchanges.pending][-1:] == [3]

    def test_a_malformed_response_passes_unchanged(self) -> None:
        exchanges = new_exchanges()
        pass_on(exchanges, asked(HEARTBEAT, 4, 9))
        frame = b"\0\0\0\7\0\0\0\x09\0\0\0"
        assert fed(exchanges.responses, frame) == frame


class TestMatching:
    @pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 13])
    @pytest.mark.parametrize("transactional_id", [None, "", "t" * 300])
    def test_produce_without_acks_has_no_response(self, version: int, transactional_id: str | None) -> None:
        exchanges = new_exchanges()
        named = transactional_id if version >= 3 else None
        request = ProduceRequest(acks=0, timeout_ms=1, topic_data=(), transactional_id=named)
        pass_on(exchanges, asked(request, version, 1))
        assert not exchanges.pending
        pass_on(exchanges, asked(request.replace(acks=1), version, 2) + asked(request.replace(acks=-1), version, 3))
        assert len(exchanges.pending) == 2
        sent = ProduceResponse(responses=())
        assert fed(exchanges.responses, response(sent, version, 2)) == response(sent, version, 2)
        assert [request.correlation_id for request in exchanges.pending] == [3]

    def test_a_request_whose_response_is_missing_is_forgotten(self) -> None:
        observations = Observations()
        exchanges = new_exchanges(observations)
        pass_on(exchanges, asked(METADATA, 1, 1) + asked(METADATA, 1, 2) + asked(HEARTBEAT, 4, 3))
        fed(exchanges.responses, response(REBALANCE, 4, 3))
        assert not exchanges.pending
        assert client_of(observations).errors == (ErrorsSeen(12, 4, ErrorCode.REBALANCE_IN_PROGRESS, 1),)

    def test_a_response_that_no_request_asked_for_passes(self) -> None:
        exchanges = new_exchanges()
        frame = response(CLUSTER, 1, 77)
        assert fed(exchanges.responses, frame) == frame
        pass_on(exchanges, asked(METADATA, 1, 1))
        assert fed(exchanges.responses, frame) == frame
        assert len(exchanges.pending) == 1

    def test_tokens_of_sasl_pass_without_being_counted(self) -> None:
        """SaslHandshake v0: the tokens behind it have no header. An empty one is the response of PLAIN."""
        observations = Observations()
        exchanges = new_exchanges(observations)
        token, empty = b"\0\0\0\x0c\0user\0secret", b"\0\0\0\0"
        pass_on(exchanges, raw(17, 0, 1, b"\0\5PLAIN"))
        fed(exchanges.responses, b"\0\0\0\x0a\0\0\0\1\0\0\0\0\0\0")
        pass_on(exchanges, token)
        assert fed(exchanges.responses, empty) == empty
        pass_on(exchanges, asked(METADATA, 1, 2))
        assert OWN_HOST.encode() in fed(exchanges.responses, response(CLUSTER, 1, 2))
        assert client_of(observations).requests == (RequestsSeen(3, 1, 1), RequestsSeen(17, 0, 1))


class TestCounts:
    def test_software_counts_when_the_broker_accepts_it(self) -> None:
        observations = Observations()
        exchanges = new_exchanges(observations)
        pass_on(exchanges, asked(SOFTWARE, 3, 1))
        assert client_of(observations).software_name == ""
        accepted = ApiVersionsResponse(error_code=0, api_keys=())
        assert fed(exchanges.responses, response(accepted, 3, 1)) == response(accepted, 3, 1)
        client = client_of(observations)
        assert (client.software_name, client.software_version, client.negotiates) == ("my-client", "1.2", True)

    def test_a_version_of_api_versions_that_is_too_new_is_no_error(self) -> None:
        observations = Observations()
        exchanges = new_exchanges(observations, "2.0")
        pass_on(exchanges, asked(SOFTWARE, 3, 1))
        refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=())
        frame = response(refusal, 0, 1)
        assert fed(exchanges.responses, frame) == frame
        assert client_of(observations).errors == ()
        assert client_of(observations).software_name == ""

    def test_software_that_the_broker_refuses_does_not_count(self) -> None:
        observations = Observations()
        exchanges = new_exchanges(observations)
        pass_on(exchanges, asked(SOFTWARE.replace(client_software_name=" "), 3, 1))
        fed(exchanges.responses, response(ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=()), 3, 1))
        client = client_of(observations)
        assert client.errors == (ErrorsSeen(18, 3, ErrorCode.INVALID_REQUEST, 1),)
        assert client.software_name == ""

    @pytest.mark.parametrize(("version", "layout"), [(2, "v2"), (3, "v3"), (4, "v4 as released")])
    def test_retention_overrides_count(self, version: int, layout: str) -> None:
        observations = Observations()
        request = OffsetCommitRequest(group_id="g", retention_time_ms=RETENTION_MS, topics=())
        pass_on(new_exchanges(observations), asked(request, version))
        client = client_of(observations)
        assert client.commits == (CommitsSeen(version, layout, 1, 1),)
        assert client.largest_retention_ms == RETENTION_MS

    def test_a_retention_override_counts_with_more_partitions_than_a_broker_of_kproto_accepts(self) -> None:
        observations = Observations()
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,) * 20_000),)
        request = OffsetCommitRequest(group_id="g", retention_time_ms=RETENTION_MS, topics=topics)
        pass_on(new_exchanges(observations), asked(request, 3))
        assert client_of(observations).largest_retention_ms == RETENTION_MS

    def test_a_step_of_the_protocol_counts_as_a_broker_counts_it(self) -> None:
        """The report leaves MEMBER_ID_REQUIRED out, not the counts."""
        observations = Observations()
        exchanges = new_exchanges(observations)
        pass_on(exchanges, raw(11, 5, 1))
        required = JoinGroupResponse(
            error_code=ErrorCode.MEMBER_ID_REQUIRED, generation_id=-1, protocol_name="", leader="", member_id="m",
            members=(),
        )  # fmt: skip
        fed(exchanges.responses, response(required, 5, 1))
        assert client_of(observations).errors == (ErrorsSeen(11, 5, ErrorCode.MEMBER_ID_REQUIRED, 1),)

    @pytest.mark.parametrize(
        ("request_frame", "row"),
        [
            (raw(2, 0), ClosedSeen(2, 0, "ListOffsets v0 is not served by the cluster", 1)),
            (asked(PRODUCE, 2), ClosedSeen(0, 2, "Produce v2 is not served by the cluster", 1)),
            (raw(0x7000, 3), ClosedSeen(-1, -1, "no API of the cluster has key 28672", 1)),
        ],
    )
    def test_a_connection_that_a_request_ended_counts(self, request_frame: bytes, row: ClosedSeen) -> None:
        observations = Observations()
        exchanges = new_exchanges(observations, "4.4")
        pass_on(exchanges, request_frame)
        assert exchanges.broker_closed() == row.reason
        (client,) = observations.snapshot().clients
        assert client.closed == (row,)

    @pytest.mark.parametrize(("release", "version"), [("3.9", 2), ("4.4", 3)])
    def test_a_produce_that_the_cluster_serves_is_no_protocol_error(self, release: str, version: int) -> None:
        exchanges = new_exchanges(Observations(), release)
        pass_on(exchanges, asked(PRODUCE, version))
        assert exchanges.broker_closed() is None

    def test_a_broker_that_ends_is_no_protocol_error(self) -> None:
        observations = Observations()
        exchanges = new_exchanges(observations)
        assert exchanges.broker_closed() is None
        pass_on(exchanges, asked(METADATA, 1))
        assert exchanges.broker_closed() is None
        assert client_of(observations).closed == ()
