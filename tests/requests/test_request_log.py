"""The request log keeps the requests of real clients, up to a limited number and size."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from kproto.codes import ErrorCode
from kproto.errors import ProtocolError
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server import Broker
from kproto_server.configuration.data_directory import DataDirectory
from kproto_server.observation.logged import NotKept
from kproto_server.observation.request_log import FRAME_KEPT_MAX_BYTES, SIZE_MAX_BYTES, RequestLog
from kproto_server.requests.context import ConnectionInfo
from tests.coordinator.broker_state import commit_request
from tests.network.raw_client import RawClient
from tests.network.requests import create_topic, find_coordinator, long_poll, topic_names

if TYPE_CHECKING:
    from pathlib import Path

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto_server.observation.logged import LoggedRequest

ORDERS = TopicPartition("orders", 0)
CLIENT_INFO = ConnectionInfo("/127.0.0.1")


def committed_offset(logged: LoggedRequest) -> int:
    request: OffsetCommitRequest = logged.request  # type: ignore[assignment]  # of this API
    return request.topics[0].partitions[0].committed_offset


def test_the_log_has_the_commits_of_a_real_client_and_their_responses() -> None:
    with Broker.running(clock="manual") as broker:
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="billing", client_id="biller", enable_auto_commit=False
        )
        with closing(consumer):
            consumer.assign([ORDERS])
            for offset in range(40, 45):  # repeated: the commit cache responds
                consumer.commit({ORDERS: OffsetAndMetadata(offset, "", -1)})
            broker.clock.advance(seconds=5)
            consumer.commit({ORDERS: OffsetAndMetadata(45, "", -1)})
        commits = broker.requests.where(api="OffsetCommit", group="billing", error=0)
        assert [committed_offset(one) for one in commits] == [40, 41, 42, 43, 44, 45]
        assert {(one.client_id, one.software_name, one.api, one.node_id) for one in commits} == {
            ("biller", "kafka-python", "OffsetCommit", 1)
        }
        assert commits[5].time_ms - commits[4].time_ms == 5000
        assert [one.responded_ms for one in commits] == [one.time_ms for one in commits]
        assert commits[0].response is not None
        assert commits == broker.requests.where(api=8, client_id="biller", version=commits[0].api_version, node_id=1)
        numbers = [one.number for one in broker.requests]
        assert numbers == list(range(1, len(broker.requests) + 1))
        assert broker.requests.where(group="billing", api="FindCoordinator")
        assert not broker.requests.where(group="shipping")
        assert broker.requests.dropped == 0


def test_produce_with_acks_and_without() -> None:
    with Broker.running() as broker:
        quick = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks=0, enable_idempotence=False)
        with closing(quick):
            quick.send("orders", b"1041")
            quick.flush()
            (without_response,) = broker.requests.wait(api="Produce")
        assert without_response.responded_ms is None
        assert without_response.response is None
        assert not broker.requests.where(api="Produce", error=0)
        sure = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "sure", "log_level": 4})
        sure.produce("orders", b"1042")
        assert sure.flush(10) == 0
        (with_response,) = broker.requests.where(api="Produce", client_id="sure", error="NONE")
        assert with_response.software_name == "confluent-kafka-python"
        with pytest.raises(TimeoutError, match="1 requests with api='Produce', client_id='sure', not 2"):
            broker.requests.wait(count=2, timeout_s=0.02, api="Produce", client_id="sure")


def test_errors_are_found_by_name_and_by_number() -> None:
    with Broker.running() as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client)
        find_coordinator(client, "g")
        assert client.ask(commit_request("g", {"nowhere": {0: (1, "")}}), 2).topics[0].partitions[0].error_code == 3
        (refused,) = broker.requests.where(api="OffsetCommit", error="UNKNOWN_TOPIC_OR_PARTITION")
        assert refused.error_codes == (3,)
        assert (refused,) == broker.requests.where(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, group="g")
        with pytest.raises(ValueError, match="there is no API 'OffsetComit'"):
            broker.requests.where(api="OffsetComit")
        with pytest.raises(ValueError, match="there is no error 'TEAPOT'"):
            broker.requests.where(error="TEAPOT")


def test_the_log_has_delayed_requests_and_the_requests_after_them(tmp_path: Path) -> None:
    with (
        Broker.running(data=DataDirectory(str(tmp_path), durability="fsync")) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        create_topic(client)
        find_coordinator(client, "g")
        commits = [(commit_request("g", {"t": {0: (offset, "")}}), 2) for offset in range(50)]
        sent = client.send(*commits, (long_poll(20), 4), (ApiVersionsRequest(), 0), commits[0])
        assert client.read_ids(len(sent)) == sent
        logged = broker.requests.where(client_id="raw")[-len(sent) :]
        assert [one.correlation_id for one in logged] == sent
        assert [one.api for one in logged] == ["OffsetCommit"] * 50 + ["Fetch", "ApiVersions", "OffsetCommit"]
        for one in logged:
            assert one.response_frame is not None
            assert int.from_bytes(one.response_frame[:4], "big") == one.correlation_id
        assert [committed_offset(one) for one in logged[:50]] == list(range(50))


def test_the_log_keeps_the_bytes_of_an_invalid_request() -> None:
    with Broker.running() as broker, RawClient(broker.bootstrap_servers) as client:
        client.socket.sendall(b"\0\0\0\x03abc")
        assert client.read_ids_to_the_end() == []
        (nonsense,) = broker.requests
        assert (nonsense.api_key, nonsense.frame, nonsense.responded_ms, nonsense.group_ids) == (-1, b"abc", None, ())
        with pytest.raises(ProtocolError):
            _ = nonsense.request


def test_the_response_to_an_unsupported_version_of_api_versions_has_version_0() -> None:
    with Broker.running(kafka_version="2.0") as broker, RawClient(broker.bootstrap_servers) as client:
        client.send((ApiVersionsRequest(client_software_name="new", client_software_version="1"), 3))
        client.read_frame()
        (asked,) = broker.requests.where(api="ApiVersions", error="UNSUPPORTED_VERSION")
        assert asked.api_version == 3


def test_a_reset_forgets_and_so_does_clear() -> None:
    with Broker.running() as broker:
        for forget in (broker.reset, broker.requests.clear):
            with RawClient(broker.bootstrap_servers) as client:
                topic_names(client)
                assert len(broker.requests) == 1
                forget()
                assert list(broker.requests) == []


def test_a_broker_can_keep_none_or_few() -> None:
    with Broker.running(requests_kept=3) as broker, RawClient(broker.bootstrap_servers) as client:
        for _ in range(5):
            topic_names(client)
        assert [one.number for one in broker.requests] == [3, 4, 5]
        assert broker.requests.dropped == 2
    with Broker.running(requests_kept=0) as broker, RawClient(broker.bootstrap_servers) as client:
        topic_names(client)
        with pytest.raises(RuntimeError, match="requests_kept=0"):
            broker.requests.where()
    with pytest.raises(ValueError, match="-1 requests can't be kept"):
        Broker(requests_kept=-1)


def test_the_size_of_the_log_is_limited() -> None:
    log = RequestLog()
    frame = bytes(FRAME_KEPT_MAX_BYTES)
    entries = [log.add(CLIENT_INFO, 1, frame, 0) for _ in range(20)]
    for entry in entries:
        log.responded(entry, frame, 0)
    kept = log.entries()
    assert sum(len(entry.frame) + len(entry.response or b"") for entry in kept) <= SIZE_MAX_BYTES
    assert len(kept) == 15
    assert log.dropped == 5
    log.responded(entries[0], frame, 0)  # it is not kept any more
    assert len(log.entries()) == 15


def test_the_log_keeps_only_the_header_of_a_very_large_request() -> None:
    with Broker.running() as broker:
        large = 2 * FRAME_KEPT_MAX_BYTES
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_request_size=2 * large)
        with closing(producer):
            producer.send("orders", b"x" * (FRAME_KEPT_MAX_BYTES - 1000)).get(10)
            producer.send("orders", b"x" * (FRAME_KEPT_MAX_BYTES + 1000))
            (whole, cut) = broker.requests.wait(count=2, api="Produce")
        assert len(whole.frame) < FRAME_KEPT_MAX_BYTES
        assert whole.request is not None
        assert len(cut.frame) < 2000
        with pytest.raises(NotKept, match="Produce request"):
            _ = cut.request
        assert cut.client_id == whole.client_id
