"""`kproto audit` of captured traffic: what is counted, what is lost, and what is no Kafka.

Method. Captures are written by the proxy's own writer, then packets are dropped, cut or taken from their middle.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
from pathlib import Path

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kproto.messages.k03_metadata import MetadataRequest, MetadataResponse
from kproto.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest
from kproto.messages.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kproto.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from kproto_server.audit.sources import Sources
from kproto_server.capture.packet_files import Packet
from kproto_server.capture.writer import CapturedConnection, endpoint
from kproto_server.observation.observed import ClientSeen, ErrorsSeen, RequestsSeen
from kproto_server.proxy.cutting import PENDING_MAX
from kproto_server.replay.conversations import Conversation, Exchange, Listener, connections_of
from tests.capture.packets import captured, pcap
from tests.commandline.commands import KPROTO, LIMIT_S, kproto
from tests.proxy.exchanged import asked, raw, response

SOFTWARE = ApiVersionsRequest(client_software_name="my-client", client_software_version="1.2")
OFFERED = ApiVersionsResponse(error_code=0, api_keys=(ApiVersion(api_key=3, min_version=0, max_version=9),))
METADATA, CLUSTER = MetadataRequest(topics=()), MetadataResponse(brokers=(), topics=())
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
REBALANCE = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def conversation(connection: CapturedConnection) -> None:
    connection.sent(asked(SOFTWARE, 3, 1))
    connection.received(response(OFFERED, 3, 1))
    connection.sent(asked(METADATA, 9, 2) + asked(HEARTBEAT, 4, 3))
    connection.received(response(CLUSTER, 9, 2))
    connection.received(response(REBALANCE, 4, 3))
    connection.sent(asked(METADATA, 8, 4))
    connection.received(response(CLUSTER, 8, 4))


ALL_REQUESTS = (RequestsSeen(3, 8, 1), RequestsSeen(3, 9, 1), RequestsSeen(12, 4, 1), RequestsSeen(18, 3, 1))


def read(found: list[Packet]) -> Sources:
    sources = Sources()
    sources.captured.connections.read(io.BytesIO(pcap(found)))
    return sources


def only_client(sources: Sources) -> ClientSeen:
    (client,) = sources.end().clients
    return client


def payloads(found: list[Packet]) -> list[int]:
    """Return the index of each packet with a payload."""
    return [number for number, packet in enumerate(found) if packet.length > 40]


class TestWhatIsCounted:
    def test_requests_errors_and_software(self, tmp_path: Path) -> None:
        sources = read(captured(tmp_path, conversation))
        client = only_client(sources)
        assert (client.client_id, client.software_name, client.negotiates) == ("app", "my-client", True)
        assert client.requests == ALL_REQUESTS
        assert client.errors == (ErrorsSeen(12, 4, ErrorCode.REBALANCE_IN_PROGRESS, 1),)
        assert sources.captured.served == {3: (0, 9)}
        found = sources.captured.connections
        assert (found.connection_count, found.lost_count, found.unread_bytes, sources.request_count) == (1, 0, 0, 4)

    def test_a_version_that_closes_the_connection_is_a_protocol_error(self, tmp_path: Path) -> None:
        def refused(connection: CapturedConnection) -> None:
            connection.sent(asked(SOFTWARE, 3, 1))
            connection.received(response(OFFERED, 3, 1))
            connection.sent(asked(METADATA, 12, 2))
            connection.closed(by_broker=True)

        client = only_client(read(captured(tmp_path, refused)))
        assert [row.reason for row in client.closed] == ["Metadata v12 is not served by the cluster"]

    def test_the_requests_of_brokers_are_left_out(self, tmp_path: Path) -> None:
        def follower(connection: CapturedConnection) -> None:
            connection.sent(asked(SOFTWARE, 3, 1))
            connection.received(response(OFFERED, 3, 1))
            state = ReplicaState(replica_id=2, replica_epoch=1)
            connection.sent(asked(FetchRequest(max_wait_ms=1, min_bytes=1, topics=(), replica_state=state), 15, 2))
            connection.sent(asked(METADATA, 9, 3))

        def old_follower(connection: CapturedConnection) -> None:
            connection.sent(asked(FetchRequest(replica_id=2, max_wait_ms=1, min_bytes=1, topics=()), 11, 1))

        sources = read(captured(tmp_path, follower, old_follower, conversation))
        assert only_client(sources).requests == ALL_REQUESTS
        assert sources.broker_request_count == 4

    def test_brokers_may_authenticate_first(self, tmp_path: Path) -> None:
        """With SASL_PLAINTEXT between brokers; the requests of a fetcher counted as those of a client."""

        def follower(connection: CapturedConnection) -> None:
            connection.sent(asked(SOFTWARE, 3, 1))
            connection.received(response(OFFERED, 3, 1))
            connection.sent(asked(SaslHandshakeRequest(mechanism="PLAIN"), 1, 2))
            connection.sent(asked(SaslAuthenticateRequest(auth_bytes=b"\0broker\0secret"), 2, 3))
            connection.sent(asked(FetchRequest(replica_id=2, max_wait_ms=1, min_bytes=1, topics=()), 11, 4))

        sources = read(captured(tmp_path, follower, conversation))
        assert only_client(sources).requests == ALL_REQUESTS
        assert sources.broker_request_count == 4

    def test_the_first_fetch_of_a_broker_may_be_large(self, tmp_path: Path) -> None:
        """From v15 on the replica id is at its end, behind what is kept of a request."""

        def follower(connection: CapturedConnection) -> None:
            partitions = tuple(
                FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1) for number in range(5000)
            )
            state = ReplicaState(replica_id=2, replica_epoch=1)
            for number, topics in enumerate(((FetchTopic(topic_id=bytes(16), partitions=partitions),), ()), 1):
                request = FetchRequest(max_wait_ms=1, min_bytes=1, topics=topics, replica_state=state)
                connection.sent(asked(request, 15, number))

        sources = read(captured(tmp_path, follower, conversation))
        assert only_client(sources).requests == ALL_REQUESTS
        assert sources.broker_request_count == 2

    def test_other_protocols_are_not_read_and_tls_is_counted(self, tmp_path: Path) -> None:
        def ssh(connection: CapturedConnection) -> None:
            connection.received(b"SSH-2.0-OpenSSH_9.2\r\n")
            connection.sent(b"SSH-2.0-OpenSSH_9.2\r\n")
            connection.sent(asked(METADATA, 9))

        def tls(connection: CapturedConnection) -> None:
            connection.sent(b"\x16\x03\x01\x02\x00" + bytes(512))
            connection.sent(b"\x16\x03\x01\x02\x00" + bytes(512))

        sources = read(captured(tmp_path, ssh, tls))
        assert sources.end().clients == ()
        assert (sources.captured.connections.connection_count, sources.captured.connections.tls_count) == (0, 1)


class TestLostPackets:
    def test_a_lost_request_is_one_gap_and_the_next_one_is_read(self, tmp_path: Path) -> None:
        found = captured(tmp_path, conversation)
        del found[payloads(found)[2]]  # Metadata v9 and Heartbeat
        sources = read(found)
        client = only_client(sources)
        assert client.requests == (RequestsSeen(3, 8, 1), RequestsSeen(18, 3, 1))
        assert client.errors == ()
        size = len(asked(METADATA, 9, 2) + asked(HEARTBEAT, 4, 3))
        assert (sources.captured.connections.lost_count, sources.captured.connections.lost_bytes) == (1, size)

    def test_a_lost_response_loses_its_errors_alone(self, tmp_path: Path) -> None:
        found = captured(tmp_path, conversation)
        del found[payloads(found)[3]]  # the response of Metadata v9
        sources = read(found)
        client = only_client(sources)
        assert client.requests == ALL_REQUESTS
        assert [row.error_code for row in client.errors] == [ErrorCode.REBALANCE_IN_PROGRESS]
        assert sources.captured.connections.lost_count == 1

    def test_a_gap_inside_a_request_loses_nothing_but_its_body(self, tmp_path: Path) -> None:
        large = raw(0, 7, 1, b"\xff\xff\xff\xff" + bytes(200_000))

        def produce(connection: CapturedConnection) -> None:
            connection.sent(large)
            connection.sent(asked(METADATA, 9, 2))

        found = captured(tmp_path, produce)
        del found[payloads(found)[1]]  # the second segment of the request
        sources = read(found)
        assert only_client(sources).requests == (RequestsSeen(0, 7, 1), RequestsSeen(3, 9, 1))
        assert (sources.captured.connections.lost_count, sources.captured.connections.unread_bytes) == (1, 0)

    def test_packets_captured_in_part_have_their_headers(self, tmp_path: Path) -> None:
        found = captured(tmp_path, conversation)
        sources = Sources()
        sources.captured.connections.read(io.BytesIO(pcap(found, captured_max=60)))
        seen = {row.api_key for row in only_client(sources).requests}
        assert {3, 18} <= seen
        assert sources.captured.connections.lost_bytes == sum(max(0, packet.length - 60) for packet in found)

    def test_a_capture_may_begin_in_the_middle(self, tmp_path: Path) -> None:
        found = captured(tmp_path, conversation)
        first = payloads(found)[2]
        client = only_client(read(found[first:]))
        assert client.requests == ALL_REQUESTS[:3]
        assert [row.error_code for row in client.errors] == [ErrorCode.REBALANCE_IN_PROGRESS]
        sources = read(found[first + 1 :])  # with two responses whose requests are not known
        client = only_client(sources)
        assert client.requests == ALL_REQUESTS[:1]
        assert sources.captured.connections.connection_count == 1


class TestCommand:
    def test_the_report_says_what_was_read(self, tmp_path: Path) -> None:
        found = captured(tmp_path, conversation, lambda each: each.sent(b"\x16\x03\x01"))
        del found[payloads(found)[3]]
        path, report = tmp_path / "kafka.pcap.gz", tmp_path / "report.json"
        path.write_bytes(gzip.compress(pcap(found)))
        done = kproto("audit", str(path), "--report", str(report))
        assert done.returncode == 0, done.stderr
        size = len(response(CLUSTER, 9, 2))
        lines = " ".join(done.stderr.split())
        assert (
            f"read 1 file: {len(found)} packets, 1 connection, 0 requests of brokers left out, "
            f"1 connection with TLS not readable, 1 gap of lost packets, {size} bytes" in lines
        )
        assert json.loads(report.read_text())["capture"] == {
            "files": [str(path)],
            "packets": len(found),
            "connections": 1,
            "tls_connections": 1,
            "gaps": 1,
            "lost_bytes": size,
            "unread_bytes": 0,
            "requests_of_brokers": 0,
        }

    def test_standard_input_and_several_files_are_read(self, tmp_path: Path) -> None:
        data = pcap(captured(tmp_path, conversation))
        path = tmp_path / "kafka.pcap"
        path.write_bytes(data)
        words = [*KPROTO, "audit", "-", str(path), "--quiet", "--report", "-"]
        done = subprocess.run(words, input=data, capture_output=True, timeout=LIMIT_S, check=True)
        (client,) = json.loads(done.stdout)["clients"]
        assert {row["count"] for row in client["requests"]} == {2}

    @pytest.mark.parametrize(
        ("data", "error"),
        [
            (b"\xd4\xc3\xb2\xa1", "can't read {path!r}: the header of the file is cut"),
            (b"tls", "no request of a client: 1 connections have TLS, which cannot be read"),
        ],
    )
    def test_errors_are_one_line(self, data: bytes, error: str, tmp_path: Path) -> None:
        if data == b"tls":
            data = pcap(captured(tmp_path, lambda each: each.sent(b"\x16\x03\x01")))
        path = tmp_path / "kafka.pcap"
        path.write_bytes(data)
        done = kproto("audit", str(path))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"kproto audit: {error.format(path=str(path))}\n"


def test_memory_does_not_grow_with_a_capture_of_one_direction() -> None:
    """No response ever comes: the oldest requests are taken as lost."""
    taken: list[Exchange] = []

    class Taking(Listener):
        def requested(self, conversation: Conversation, exchange: Exchange) -> None:
            taken.append(exchange)

    ends = endpoint("127.0.0.1", 1), endpoint("127.0.0.1", 9092)
    count = PENDING_MAX + 1000
    for connections in (Sources().captured.connections, connections_of(Taking())):
        conversation = connections.new_conversation(*ends)
        conversation.requests.feed(b"".join(asked(HEARTBEAT, 4, number) for number in range(count)))
        assert len(conversation.pending_ids()) == PENDING_MAX
    assert (len(taken), {exchange.frame for exchange in taken}) == (count, {b""})
