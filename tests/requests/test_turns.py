"""Costly requests wait for their turn: other connections are served before, and the order of responses is kept.

Method. Two connections of a dispatcher whose turns the test completes, one after the other, as the event loop does.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from kproto.headers import request_frame
from kproto.message import Request
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.cluster.topics import NO_LEADER
from kproto_server.connection.connection import Connection
from kproto_server.connection.connection_state import DELAYED
from kproto_server.connection.dispatcher import LATE_MS, RANK_AHEAD, Dispatcher
from kproto_server.deferred import COSTLY, TRUSTED, UNKNOWN, Turn
from kproto_server.handlers import k03_metadata
from kproto_server.handlers.k01_fetch import CONVERTED_MAX_BYTES, RESPONSE_MAX_BYTES, SMALL_BYTES
from kproto_server.handlers.k03_metadata import BY_ID_SINCE, SMALL_PARTITIONS
from kproto_server.observation.observe import Observations
from kproto_server.partition_log.partition_data import PartitionData
from kproto_server.requests.context import ConnectionInfo
from kproto_server.requests.endpoint import TURN_SIZE_BYTES
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import NOW_MS, new_state
from tests.robustness.steps import count_steps

LARGE = DescribeGroupsRequest(groups=("g",) * TURN_SIZE_BYTES)
SMALL = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
BATCH_BYTES = 1 << 20


def frame(request: Request, version: int, correlation_id: int) -> bytes:
    return request_frame(request, version, correlation_id=correlation_id)


def ids(data: bytes) -> list[int]:
    """Return the correlation ids of responses."""
    found, position = [], 0
    while position < len(data):
        found.append(int.from_bytes(data[position + 4 : position + 8], "big"))
        position += 4 + int.from_bytes(data[position : position + 4], "big")
    return found


@pytest.fixture
def dispatcher() -> Dispatcher:
    """A dispatcher in an iteration of the event loop in which a costly request was handled already."""
    found = Dispatcher(new_state(topics={"t": 1}), Observations(), takes_turns=True)
    found.has_free_turn = False
    return found


def connect(dispatcher: Dispatcher) -> Connection:
    return Connection(dispatcher, dispatcher.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))


def take_turn(dispatcher: Dispatcher, connection: Connection) -> bytes:
    """Complete the first turn and return what the connection responds."""
    assert dispatcher.turns
    dispatcher.give_turn()
    assert dispatcher.take_runnable() == [connection]
    return connection.resume(NOW_MS)


def test_a_large_request_waits_while_others_are_served(dispatcher: Dispatcher) -> None:
    costly, other = connect(dispatcher), connect(dispatcher)
    assert costly.receive(frame(LARGE, 0, 1), NOW_MS) == b""
    assert costly.state is DELAYED
    assert ids(other.receive(frame(SMALL, 0, 7), NOW_MS)) == [7]
    assert ids(take_turn(dispatcher, costly)) == [1]


def test_the_first_large_request_of_an_iteration_does_not_wait(dispatcher: Dispatcher) -> None:
    dispatcher.has_free_turn = True
    first, second = connect(dispatcher), connect(dispatcher)
    assert ids(first.receive(frame(LARGE, 0, 1), NOW_MS)) == [1]
    assert second.receive(frame(LARGE, 0, 2), NOW_MS) == b""
    dispatcher.has_free_turn = True  # the next iteration: the request that waits comes first
    assert first.receive(frame(LARGE, 0, 3), NOW_MS) == b""
    assert dispatcher.has_free_turn, "so the event loop completes the turn of the request that waits"
    assert ids(take_turn(dispatcher, second)) == [2]
    assert ids(take_turn(dispatcher, first)) == [3]


def test_the_requests_behind_a_large_one_keep_their_order(dispatcher: Dispatcher) -> None:
    costly = connect(dispatcher)
    sent = frame(SMALL, 0, 1) + frame(LARGE, 0, 2) + frame(SMALL, 0, 3) + frame(LARGE, 0, 4) + frame(SMALL, 0, 5)
    assert ids(costly.receive(sent, NOW_MS)) == [1]
    assert ids(take_turn(dispatcher, costly)) == [2, 3]
    assert ids(take_turn(dispatcher, costly)) == [4, 5]
    assert not dispatcher.turns


def test_each_connection_has_one_turn_at_a_time(dispatcher: Dispatcher) -> None:
    first, second = connect(dispatcher), connect(dispatcher)
    first.receive(frame(LARGE, 0, 1) + frame(LARGE, 0, 2), NOW_MS)
    second.receive(frame(LARGE, 0, 3), NOW_MS)
    assert ids(take_turn(dispatcher, first)) == [1]
    assert ids(take_turn(dispatcher, second)) == [3]
    assert ids(take_turn(dispatcher, first)) == [2]


def test_a_client_that_has_gone_has_no_turn(dispatcher: Dispatcher) -> None:
    costly = connect(dispatcher)
    costly.receive(frame(LARGE, 0, 1), NOW_MS)
    costly.abandon()
    assert dispatcher.turns
    dispatcher.give_turn()
    assert dispatcher.take_runnable() == []


class FakeTime:
    """Real time as the test lets it pass: ListGroups makes an iteration late, all else takes nothing."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.now_s = 1.0
        self._clock = dispatcher.state.clock
        dispatcher.monotonic_s = lambda: self.now_s
        endpoint = dispatcher.endpoints[16, 0]

        def handle(request: Any, context: Any) -> Any:
            self.now_s += LATE_MS / 1000 + 0.005
            return endpoint.handle(request, context)

        dispatcher.endpoints[16, 0] = replace(endpoint, handle=handle)
        self.begin_iteration(dispatcher)

    def begin_iteration(self, dispatcher: Dispatcher) -> None:
        """Begin an iteration of the event loop, with clients that wait."""
        self._clock.tick(self.now_s * 1000.0)
        dispatcher.begin_iteration()


COSTLY_REQUEST = ListGroupsRequest()


def test_what_comes_behind_a_costly_request_waits_and_clients_with_cheap_requests_are_first(
    dispatcher: Dispatcher,
) -> None:
    FakeTime(dispatcher)
    trusted, first, second = connect(dispatcher), connect(dispatcher), connect(dispatcher)
    assert ids(trusted.receive(frame(SMALL, 0, 1), NOW_MS)) == [1]
    assert ids(first.receive(frame(COSTLY_REQUEST, 0, 2), NOW_MS)) == [2]
    assert second.receive(frame(COSTLY_REQUEST, 0, 3), NOW_MS) == b""
    assert trusted.receive(frame(SMALL, 0, 4), NOW_MS) == b""
    assert dispatcher.next_turn_rank == TRUSTED
    assert ids(take_turn(dispatcher, trusted)) == [4]
    assert ids(take_turn(dispatcher, second)) == [3]


def test_costly_requests_of_one_read_have_a_turn_each(dispatcher: Dispatcher) -> None:
    FakeTime(dispatcher)
    client = connect(dispatcher)
    assert ids(client.receive(b"".join(frame(COSTLY_REQUEST, 0, n) for n in (1, 2, 3)), NOW_MS)) == [1]
    assert ids(take_turn(dispatcher, client)) == [2]
    assert ids(take_turn(dispatcher, client)) == [3]


def test_a_client_with_a_costly_request_waits_for_its_turn_until_it_has_sent_cheap_ones(dispatcher: Dispatcher) -> None:
    time = FakeTime(dispatcher)
    client = connect(dispatcher)
    client.receive(frame(COSTLY_REQUEST, 0, 0), NOW_MS)
    for count in range(COSTLY):
        time.begin_iteration(dispatcher)
        dispatcher.has_free_turn = False
        assert (client.receive(frame(SMALL, 0, 1), NOW_MS) == b"") == (count < COSTLY - UNKNOWN), count
        if count < COSTLY - UNKNOWN:
            assert ids(take_turn(dispatcher, client)) == [1]


def test_what_else_makes_an_iteration_late_is_no_cost_of_the_next_request(dispatcher: Dispatcher) -> None:
    """To send a large response takes long, too."""
    time = FakeTime(dispatcher)
    client = connect(dispatcher)
    assert ids(client.receive(frame(SMALL, 0, 1), NOW_MS)) == [1]
    time.now_s += 0.05
    assert ids(client.receive(frame(SMALL, 0, 2), NOW_MS)) == [2]
    time.begin_iteration(dispatcher)
    dispatcher.has_free_turn = False
    assert ids(client.receive(frame(SMALL, 0, 3), NOW_MS)) == [3]


def test_a_costly_operation_has_its_turn_after_a_limited_number_of_cheap_ones(dispatcher: Dispatcher) -> None:
    costly = Turn(COSTLY)
    dispatcher.queue(costly)
    for _ in range(COSTLY * RANK_AHEAD - 1):
        dispatcher.queue(Turn(TRUSTED))
        dispatcher.give_turn()
        assert not costly.is_complete
    dispatcher.queue(Turn(TRUSTED))
    dispatcher.queue(Turn(TRUSTED))
    dispatcher.give_turn()
    dispatcher.give_turn()
    assert costly.is_complete


def test_a_topic_is_deleted_and_gets_partitions_while_it_is_described() -> None:
    topics = dict.fromkeys(("a", "b", "c"), SMALL_PARTITIONS // 2 + 1)
    dispatcher = Dispatcher(new_state(topics=topics), Observations(), takes_turns=True)
    client = connect(dispatcher)
    assert client.receive(frame(MetadataRequest(topics=None), 1, 1), NOW_MS) == b""
    assert take_turn(dispatcher, client) == b""
    cluster = dispatcher.state.cluster
    cluster.delete_topic("c")
    assert cluster.add_partitions(cluster.topics["b"], SMALL_PARTITIONS) is None
    described = MetadataResponse.decode(all_turns(dispatcher, client)[8:], 1)
    assert {topic.name for topic in described.topics} >= set(topics)


def all_turns(dispatcher: Dispatcher, connection: Connection) -> bytes:
    """Complete turns until there is a response."""
    while not (response := take_turn(dispatcher, connection)):
        pass
    return response


def test_no_slice_of_a_response_takes_more_steps_with_more_partitions() -> None:
    """Nor with all of them in one topic."""
    most = []
    for partition_count in (SMALL_PARTITIONS + 1, 2 * SMALL_PARTITIONS):
        dispatcher = Dispatcher(new_state(topics={"t": partition_count}), Observations(), takes_turns=True)
        client = connect(dispatcher)
        data = frame(MetadataRequest(topics=None), 9, 1)
        steps = [count_steps(lambda c=client, d=data: c.receive(d, NOW_MS))]  # type: ignore[misc]
        while dispatcher.turns:
            steps.append(count_steps(lambda d=dispatcher, c=client: take_turn(d, c)))  # type: ignore[misc]
        most.append(max(steps[2:]))  # the second one generates the encoder
    assert most[1] < 1.1 * most[0]


@pytest.mark.parametrize("version", [4, 8, 9, 12, 13])
def test_a_response_in_slices_equals_one_that_is_made_at_once(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the error codes that are observed."""
    topics = {"a": 3, "b": 1, "c": 2}
    state = new_state(topics=topics)
    state.cluster.topics["a"].partitions[1].leader = NO_LEADER
    ids = [bytes(15) + b"x", *(topic.topic_id for topic in state.cluster.topics.values())]
    asked = [MetadataRequestTopic(topic_id=one, name=None) for one in ids]
    if version < BY_ID_SINCE:
        asked = [MetadataRequestTopic(name=name) for name in ("x", *topics)]
    request = MetadataRequest(topics=tuple(asked), allow_auto_topic_creation=False)
    responses, seen = [], []
    for small in (SMALL_PARTITIONS, 0):
        monkeypatch.setattr(k03_metadata, "SMALL_PARTITIONS", small)
        observations = Observations()
        dispatcher = Dispatcher(state, observations, takes_turns=True)
        client = connect(dispatcher)
        now = client.receive(frame(request, version, 1), NOW_MS)
        assert bool(now) == bool(small)
        responses.append(now or all_turns(dispatcher, client))
        seen.append(observations.snapshot())
    assert responses[0] == responses[1]
    assert seen[0] == seen[1]


def produce(broker: InMemoryBroker, count: int, size_bytes: int = BATCH_BYTES) -> None:
    records = build_record_batch([Record(b"k", bytes(size_bytes))])
    topics = (TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=records),)),)
    client = broker.connect()
    for _ in range(count):
        client.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 7)


def fetch(max_bytes: int, max_wait_ms: int = 0, min_bytes: int = 1) -> FetchRequest:
    partitions = (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes),)
    topics = (FetchTopic(topic="t", partitions=partitions),)
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=topics)


def test_a_fetch_returns_no_more_than_the_limit_of_the_broker() -> None:
    broker = InMemoryBroker(topics={"t": 1}, settings={"message.max.bytes": str(2 * BATCH_BYTES)})
    produce(broker, RESPONSE_MAX_BYTES // BATCH_BYTES + 2)
    response = broker.connect().ask(fetch(2**31 - 1), 4)
    size = len(response.responses[0].partitions[0].records)  # type: ignore[attr-defined]  # a FetchResponse
    assert RESPONSE_MAX_BYTES - 2 * BATCH_BYTES < size <= RESPONSE_MAX_BYTES


def test_a_fetch_of_converted_records_returns_less() -> None:
    """Versions 0 to 3, whose records are converted one by one."""
    broker = InMemoryBroker(kafka_version="3.9", topics={"t": 1})
    batch_bytes, count = CONVERTED_MAX_BYTES // 10, 15
    produce(broker, count, batch_bytes)
    for version, expected in ((3, 10), (4, count)):
        response = broker.connect().ask(fetch(2**31 - 1), version)
        records = response.responses[0].partitions[0].records  # type: ignore[attr-defined]  # a FetchResponse
        assert len(records) // batch_bytes in (expected, expected - 1)


def test_a_fetch_of_many_records_returns_as_many_after_its_turn_as_it_wanted() -> None:
    broker = InMemoryBroker(topics={"t": 1}, settings={"message.max.bytes": str(2 * BATCH_BYTES)})
    produce(broker, 6)
    wanted = SMALL_BYTES + 2 * BATCH_BYTES + 1000
    with mock.patch.object(
        PartitionData, "_read_batches", autospec=True, side_effect=PartitionData._read_batches
    ) as read:
        response = broker.connect().ask(fetch(wanted), 4)
    assert read.call_count == 1, "nothing is copied before the turn"
    assert len(response.responses[0].partitions[0].records) > SMALL_BYTES  # type: ignore[attr-defined]  # as above


def test_a_response_has_the_records_of_a_partition_once() -> None:
    """Those of one batch are the batch itself."""
    broker = InMemoryBroker(topics={"t": 1}, settings={"message.max.bytes": str(2 * BATCH_BYTES)})
    produce(broker, 1)
    connection = Connection(broker.dispatcher, broker.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    request = frame(fetch(2 * BATCH_BYTES), 4, 7)
    connection.receive(request, NOW_MS)  # generates the codec
    tracemalloc.start()
    try:
        response = connection.receive(request, NOW_MS)
        assert len(response) > BATCH_BYTES
        assert tracemalloc.get_traced_memory()[1] < 1.5 * len(response)
    finally:
        tracemalloc.stop()


def test_records_of_several_partitions_are_large_together(dispatcher: Dispatcher) -> None:
    """Each of three partitions has a batch of a megabyte; two of them are small enough for an iteration."""
    cluster = dispatcher.state.cluster
    cluster.create_topic("three", partition_count=3, replication_factor=1)
    for partition in cluster.topics["three"].partitions:
        partition.make_data().append(build_record_batch([Record(None, bytes(BATCH_BYTES))]), 0, -1, 0)
    for count, is_large in ((1, False), (3, True)):
        partitions = tuple(
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=2 * BATCH_BYTES)
            for index in range(count)
        )
        topics = (FetchTopic(topic="three", partitions=partitions),)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=2**31 - 1, topics=topics)
        response = connect(dispatcher).receive(frame(request, 4, count), NOW_MS)
        assert bool(response) is not is_large
        assert bool(dispatcher.turns) is is_large


def test_a_fetch_that_wants_more_than_there_is_waits_after_its_turn() -> None:
    broker = InMemoryBroker(topics={"t": 1}, settings={"message.max.bytes": str(2 * BATCH_BYTES)})
    produce(broker, 4)
    client = broker.connect()
    client.send(fetch(20 * BATCH_BYTES, max_wait_ms=500, min_bytes=10 * BATCH_BYTES), 4)
    assert not client.responses
    broker.advance(milliseconds=500)
    assert len(client.responses) == 1
