"""What a rule does to the bytes of a response and to the connection: seen through a raw socket.

The broker's clock stands still: a delay ends when a test advances it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.errors import CorruptBatch
from kproto.headers import read_response
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.records.batches import read_batches
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server import Broker
from kproto_server.configuration.data_directory import DataDirectory
from tests.coordinator.broker_state import commit_request
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, committed, create_topic
from tests.waiting import wait_until

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
UNKNOWN_MEMBER = ErrorCode.UNKNOWN_MEMBER_ID
COMMIT = commit_request("g", {"t": {0: 8}})


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Broker]:
    with Broker.running(clock="manual") as running:
        yield running


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker whose responses to commits wait for the disk."""
    with Broker.running(clock="manual", data=DataDirectory(str(tmp_path_factory.mktemp("data")))) as running:
        yield running


@pytest.fixture(params=["in_memory"])
def broker(request: pytest.FixtureRequest) -> Broker:
    running: Broker = request.getfixturevalue(request.param)
    running.reset(new_ports=True)
    return running


BOTH = pytest.mark.parametrize("broker", ["in_memory", "on_disk"], indirect=True)


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap_servers) as connected:
        commit_offset(connected, offset=7)
        yield connected


def is_pending(client: RawClient, broker: Broker) -> bool:
    """Whether no response has come although the broker has handled all that was sent."""
    broker.clock.advance()
    client.socket.setblocking(False)
    try:
        client.socket.recv(1)
    except BlockingIOError:
        return True
    finally:
        client.socket.settimeout(60)
    return False


@BOTH
def test_a_delay_before_the_effect(broker: Broker, client: RawClient) -> None:
    with broker.faults.add(api="OffsetCommit", delay_ms=60_000) as rule, RawClient(broker.bootstrap_servers) as other:
        client.send((COMMIT, 2))
        rule.wait_fired()
        assert is_pending(client, broker)
        assert committed(other) == 7
        broker.clock.advance(minutes=1)
        client.read_frame()
        assert committed(other) == 8


@BOTH
def test_a_delay_after_the_effect(broker: Broker, client: RawClient) -> None:
    with broker.faults.add(api="OffsetCommit", delay_ms=60_000, when="after"):
        client.send((COMMIT, 2))
        with RawClient(broker.bootstrap_servers) as other:
            wait_until(lambda: committed(other) == 8, "the effect")
        assert is_pending(client, broker)
        broker.clock.advance(minutes=1)
        client.read_frame()


def test_a_delay_before_an_error(broker: Broker, client: RawClient) -> None:
    with broker.faults.add(api="Heartbeat", delay_ms=60_000, error="NOT_COORDINATOR") as rule:
        client.send((HEARTBEAT, 3))
        rule.wait_fired()
        assert is_pending(client, broker)
        broker.clock.advance(minutes=1)
        _, response = read_response(client.read_frame(), HeartbeatRequest, 3)
        assert response.error_code == ErrorCode.NOT_COORDINATOR  # type: ignore[attr-defined]


@BOTH
@pytest.mark.parametrize(("when", "offset"), [("before", 7), ("after", 8)])
@pytest.mark.parametrize("action", ["close", "reset"])
def test_a_connection_closed(action: str, when: Any, offset: int, broker: Broker, client: RawClient) -> None:
    broker.faults.add(api="OffsetCommit", when=when, **{action: True})  # type: ignore[arg-type]
    client.send((COMMIT, 2))
    if action == "reset":
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1)
    else:
        assert client.socket.recv(1) == b""
    with RawClient(broker.bootstrap_servers) as other:
        assert committed(other) == offset
    assert all(not one.closed for one in broker.observations.snapshot().clients)  # it was not what the client sent


@BOTH
@pytest.mark.parametrize(("when", "offset"), [("before", 7), ("after", 8)])
def test_no_response_ever(when: Any, offset: int, broker: Broker, client: RawClient) -> None:
    with broker.faults.add(api="OffsetCommit", when=when, no_response=True) as rule:
        client.send((COMMIT, 2), (HEARTBEAT, 3))  # nor does a request behind it get one
        rule.wait_fired()
        with RawClient(broker.bootstrap_servers) as other:
            wait_until(lambda: committed(other) == offset, "the effect")
        broker.clock.advance(days=1)
        assert is_pending(client, broker)
    client.socket.close()
    with RawClient(broker.bootstrap_servers) as other:
        assert other.ask(HEARTBEAT, 3).error_code == UNKNOWN_MEMBER


def test_half_a_response(broker: Broker, client: RawClient) -> None:
    broker.faults.add(api="Metadata", truncate_bytes=20)
    client.send((MetadataRequest(topics=None), 1))
    received = b""
    while data := client.socket.recv(100):
        received += data
    assert len(received) == 20
    assert int.from_bytes(received[:4], "big") > 16


def test_a_response_in_pieces(broker: Broker, client: RawClient) -> None:
    whole = client.ask(MetadataRequest(topics=None), 1)
    broker.faults.add(api="Metadata", chunk_bytes=7, chunk_interval_ms=1000, times=1)
    (number,) = client.send((MetadataRequest(topics=None), 1))
    received = b""
    while len(received) < 28:
        received += client.socket.recv(100)
        assert len(received) % 7 == 0
        broker.clock.advance(seconds=1)
    while len(received) < 4 + int.from_bytes(received[:4], "big"):
        broker.clock.advance(seconds=1)
        received += client.socket.recv(100)
    assert read_response(received[4:], MetadataRequest, 1) == (number, whole)
    (logged,) = [one for one in broker.requests.where(api="Metadata") if one.correlation_id == number]
    assert logged.response == whole
    assert client.ask(HEARTBEAT, 3).error_code == UNKNOWN_MEMBER


def test_a_negative_size(broker: Broker, client: RawClient) -> None:
    broker.faults.add(api="Heartbeat", corrupt="length")
    client.send((HEARTBEAT, 3))
    (size,) = struct.unpack(">i", client.socket.recv(4))
    assert size < 0


def fetch() -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="t", partitions=(partition,)),))


@pytest.mark.parametrize("version", [2, 4, 11])
def test_a_wrong_checksum(version: int, broker: Broker, client: RawClient) -> None:
    data = (PartitionProduceData(index=0, records=build_record_batch([Record(None, b"r", timestamp=1)])),)
    client.ask(ProduceRequest(acks=-1, timeout_ms=1, topic_data=(TopicProduceData(name="t", partition_data=data),)), 7)

    with broker.faults.add(api="Fetch", corrupt="checksum"):
        corrupt = client.ask(fetch(), version).responses[0].partitions[0].records
        with pytest.raises(CorruptBatch):
            list(read_batches(corrupt))
    records = client.ask(fetch(), version).responses[0].partitions[0].records
    assert len(list(read_batches(records))) == 1


@pytest.mark.parametrize("magic", [0, 1])
def test_records_of_an_older_broker(magic: int, broker: Broker, client: RawClient) -> None:
    create_topic(client, "old")
    broker.topics.produce("old", "value", key="key", timestamp_ms=5)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic="old", partitions=(partition,)),))
    with broker.faults.add(api="Fetch", magic=magic):
        records = client.ask(request, 12).responses[0].partitions[0].records
    (batch,) = read_batches(records)
    (record,) = batch.records()
    assert (batch.magic, record.key, record.value) == (magic, b"key", b"value")
    assert record.timestamp == (5 if magic else -1)


@pytest.mark.parametrize("version", [4, 12])
def test_empty_and_null_fields(version: int, broker: Broker, client: RawClient) -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    whole = client.ask(request, version)
    with broker.faults.add(api="Metadata", empty="isr_nodes"):
        emptied = client.ask(request, version)
    ((partition,),) = (topic.partitions for topic in emptied.topics)
    assert (partition.isr_nodes, partition.replica_nodes) == ((), (1,))
    assert emptied.brokers == whole.brokers
    with broker.faults.add(api="Fetch", null="records"):
        (topic,) = client.ask(fetch(), version).responses
    assert topic.partitions[0].records is None


def test_merged_responses(broker: Broker, client: RawClient) -> None:
    """A response that is late and the one behind it come in one packet."""
    with broker.faults.add(api="OffsetCommit", delay_ms=60_000, when="after"):
        client.send((COMMIT, 2), (HEARTBEAT, 3))
        assert is_pending(client, broker)
        broker.clock.advance(minutes=1)
        packet = client.socket.recv(1000)
    assert len(packet) > 4 + int.from_bytes(packet[:4])


@pytest.mark.parametrize(("version", "count"), [(8, 0), (12, 4)])
def test_unknown_tagged_fields(version: int, count: int, broker: Broker, client: RawClient) -> None:
    create_topic(client, "tagged")
    request = MetadataRequest(topics=(MetadataRequestTopic(name="tagged"),))
    whole = client.ask(request, version)
    with broker.faults.add(api="Metadata", unknown_tags=True):
        tagged = client.ask(request, version)
    (node,), (topic,) = tagged.brokers, tagged.topics
    structs = (tagged, node, topic, topic.partitions[0])
    assert [len(each.unknown_tagged_fields) for each in structs] == [1 if count else 0] * len(structs)
    assert (str(tagged).count("unknown_tagged_fields"), tagged.cluster_id) == (count, whole.cluster_id)


def test_a_throttled_client_is_not_read(broker: Broker, client: RawClient) -> None:
    broker.faults.add(api="Heartbeat", throttle_ms=60_000, times=1)
    assert client.ask(HEARTBEAT, 3).throttle_time_ms == 60_000
    client.send((HEARTBEAT, 3))
    assert is_pending(client, broker)
    broker.clock.advance(minutes=1)
    client.read_frame()


def test_before_2_0_the_response_is_throttled() -> None:
    with Broker.running(clock="manual", kafka_version="1.1") as broker, RawClient(broker.bootstrap_servers) as client:
        rule = broker.faults.add(api="ApiVersions", throttle_ms=60_000)
        client.send((ApiVersionsRequest(), 1))
        rule.wait_fired()
        assert is_pending(client, broker)
        broker.clock.advance(minutes=1)
        _, response = read_response(client.read_frame(), ApiVersionsRequest, 1)
        assert response.throttle_time_ms == 60_000  # type: ignore[attr-defined]


def test_fewer_versions(broker: Broker, client: RawClient) -> None:
    broker.faults.add(max_versions={"Fetch": 4, "Produce": None})
    listed = {one.api_key: one.max_version for one in client.ask(ApiVersionsRequest(), 0).api_keys}
    assert listed[1] == 4
    assert 0 not in listed
    assert listed[3] > 4


def test_produce_without_a_response_closes_the_connection(broker: Broker, client: RawClient) -> None:
    """As a real broker does: acks=0 has no response that could carry the error."""
    broker.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER")
    data = (PartitionProduceData(index=0, records=build_record_batch([Record(None, b"r", timestamp=1)])),)
    client.send(
        (ProduceRequest(acks=0, timeout_ms=1, topic_data=(TopicProduceData(name="t", partition_data=data),)), 7)
    )
    client.wait_closed()


def test_a_shutdown_does_not_wait_for_rules() -> None:
    with Broker.running() as broker, RawClient(broker.bootstrap_servers) as client:
        rule = broker.faults.add(api="Heartbeat", no_response=True)
        client.send((HEARTBEAT, 3))
        rule.wait_fired()


def test_reset_ends_the_rules_of_a_test_and_keeps_those_of_the_start() -> None:
    with Broker.running(faults=[{"api": "Heartbeat", "times": 1, "error": "NOT_COORDINATOR"}]) as broker:
        added = broker.faults.add(api="Heartbeat", error="REQUEST_TIMED_OUT")
        for _ in range(2):
            with RawClient(broker.bootstrap_servers) as client:
                assert client.ask(HEARTBEAT, 3).error_code == ErrorCode.NOT_COORDINATOR
            broker.reset()
        assert len(broker.faults) == 1
        assert added.fired == 0


# Former and wrong leaders and coordinators.


def leaders(client: RawClient) -> list[int]:
    (topic,) = client.ask(MetadataRequest(topics=None), 9).topics
    return [partition.leader_id for partition in sorted(topic.partitions)]


def test_former_leaders() -> None:
    settings = {"num.partitions": 2, "default.replication.factor": 2}
    with Broker.running(brokers=2, settings=settings) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client)
        before = leaders(client)
        assert set(before) == {1, 2}
        rule = broker.faults.add(stale=True, topic="t")
        broker.stop_node(2)
        assert leaders(client) == before
        response = client.ask(MetadataRequest(topics=None), 9)
        assert {node.node_id for node in response.brokers} == {1, 2}
        rule.remove()
        assert leaders(client) == [1, 1]
        with broker.faults.add(leader=2):
            assert leaders(client) == [2, 2]


@pytest.mark.parametrize("version", [0, 4])
def test_other_coordinators(version: int) -> None:
    def coordinator(client: RawClient) -> Any:
        request = FindCoordinatorRequest(key="g") if version < 4 else FindCoordinatorRequest(coordinator_keys=("g",))
        found = client.ask(request, version)
        return found if version < 4 else found.coordinators[0]

    settings = {"offsets.topic.replication.factor": 1}
    with Broker.running(brokers=2, settings=settings) as broker, RawClient(broker.bootstrap_servers) as client:
        coordinator(client)
        right = coordinator(client).node_id
        wrong = 3 - right
        with broker.faults.add(coordinator=wrong, group="g") as rule:
            assert coordinator(client).node_id == wrong
            assert rule.fired == 1
        with broker.faults.add(stale=True, group="g"):
            assert coordinator(client).node_id == right
        assert isinstance(COMMIT, OffsetCommitRequest)
        with RawClient(broker.bootstrap_servers.split(",")[wrong - 1]) as other:
            response = other.ask(COMMIT, 2)
            assert response.topics[0].partitions[0].error_code in (
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
