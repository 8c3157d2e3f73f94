"""Responses wait until the log has synced: their order, and the offsets that are visible meanwhile (OS-25 to OS-29)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kproto import registry
from kproto.headers import request_frame
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto_server.connection.connection import CLOSED_BY_DEFECT, Connection
from kproto_server.connection.deferred_queue import PENDING_MAX, PENDING_SIZE_MAX_BYTES
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import NOW_MS, Offsets, commit_request, new_state
from tests.coordinator.change_logs import RecordingLog
from tests.requests.connections import frames
from tests.throttling.test_handler_time import SlowHandlers
from tests.throttling.test_throttling import set_quota

if TYPE_CHECKING:
    from typing import Any

    from kproto.message import Request

COMMIT, FETCH = (8, 5), (9, 5)


class Client:
    """A connection to a broker whose log syncs when the test calls `synced`."""

    def __init__(self, *, caches_commits: bool = True) -> None:
        self.state = new_state()
        self.log = RecordingLog(waits=True)
        self.state.coordinator.log = self.log
        self.dispatcher = Dispatcher(self.state, Observations(), caches_commits=caches_commits)
        self.connection = self.connect()
        self.sent = 0
        self._asked: dict[int, tuple[int, int]] = {}

    def connect(self) -> Connection:
        return Connection(self.dispatcher, self.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))

    def frame(self, request: Request, api: tuple[int, int]) -> bytes:
        self.sent += 1
        self._asked[self.sent] = api
        return request_frame(request, api[1], correlation_id=self.sent, client_id="c")

    def commit(self, offset: int, group: str = "g") -> bytes:
        return self.frame(commit_request(group, {"t": {0: offset, 1: offset}}), COMMIT)

    def fetch(self, group: str = "g") -> bytes:
        topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1)),)
        return self.frame(OffsetFetchRequest(group_id=group, topics=topics), FETCH)

    def send(self, *sent: bytes) -> list[tuple[int, Any]]:
        return self.responses(self.connection.receive(b"".join(sent), NOW_MS))

    def synced(self) -> list[tuple[int, Any]]:
        """Sync the log; return the responses that the connection then sends."""
        self.log.settle()
        released = self.dispatcher.take_runnable()
        assert self.connection in released
        return self.responses(self.connection.proceed(NOW_MS))

    def responses(self, data: bytes) -> list[tuple[int, Any]]:
        """Return the correlation id of each response, and the error codes of a commit or the offsets of a fetch."""
        found: list[tuple[int, Any]] = []
        for frame in frames(data):
            number = int.from_bytes(frame[:4], "big")
            response: Any = registry.codec(*self._asked[number]).decode_response(frame, 4)[0]
            partitions = [partition for topic in response.topics for partition in topic.partitions]
            if self._asked[number] == FETCH:
                found.append((number, [partition.committed_offset for partition in partitions]))
            else:
                found.append((number, {partition.error_code for partition in partitions}))
        return found


@pytest.fixture(params=[True, False], ids=["cached", "uncached"])
def client(request: pytest.FixtureRequest) -> Client:
    return Client(caches_commits=request.param)


def test_a_commit_gets_its_response_and_is_visible_after_the_sync(client: Client) -> None:
    """OS-25, OS-15."""
    for offset in range(1, 6):  # the commit cache responds to the later commits
        assert client.send(client.commit(offset)) == []
        number = client.sent
        other = client.connect()
        before = [offset - 1, offset - 1] if offset > 1 else [-1, -1]
        assert client.responses(other.receive(client.fetch(), NOW_MS)) == [(client.sent, before)]
        assert client.synced() == [(number, {0})]
        assert client.responses(other.receive(client.fetch(), NOW_MS)) == [(client.sent, [offset, offset])]


def test_commits_share_a_sync_and_get_responses_in_order(client: Client) -> None:
    """OS-27, OS-28."""
    for offset in (1, 2, 3):
        client.send(client.commit(offset))
        client.synced()
    sent = client.sent
    assert client.send(client.commit(11), client.commit(12), client.commit(13)) == []
    assert client.synced() == [(sent + 1, {0}), (sent + 2, {0}), (sent + 3, {0})]
    assert client.send(client.fetch()) == [(sent + 4, [13, 13])]


def test_a_request_after_a_commit_sees_its_offsets(client: Client) -> None:
    """A pipelined fetch waits for the commit before it (BA-8, OS-12)."""
    assert client.send(client.commit(1), client.fetch(), client.commit(2), client.fetch()) == []
    assert client.connection.state.name == "BLOCKED"
    assert client.synced() == [(1, {0}), (2, [1, 1])]
    assert client.synced() == [(3, {0}), (4, [2, 2])]
    assert client.connection.state.name == "READY"


@pytest.mark.parametrize("log_error", [56, 10])
def test_a_failed_sync_is_an_error_and_changes_nothing(client: Client, log_error: int) -> None:
    """OC-35, OC-36, OS-24."""
    for offset in (1, 2, 3):
        client.send(client.commit(offset))
        client.synced()
    client.log.error = log_error
    client.send(client.commit(4), client.commit(5))
    error = {56: 16, 10: -1}[log_error]
    assert client.synced() == [(4, {error}), (5, {error})]
    assert client.send(client.fetch()) == [(6, [3, 3])]


def test_a_connection_has_a_limited_number_of_pending_commits() -> None:
    client = Client()
    commits = b"".join(client.commit(offset) for offset in range(PENDING_MAX + 10))
    client.connection.receive(commits, NOW_MS)
    assert client.connection.state.name == "BLOCKED"
    assert len(client.connection.pending) == PENDING_MAX
    assert len(client.synced()) == PENDING_MAX
    assert len(client.synced()) == 10


def test_a_connection_has_a_limited_size_of_pending_commits() -> None:
    client = Client()
    partitions: Offsets = {"t": {0: (7, "x" * 4000), 1: (7, "x" * 4000)}}
    size = len(client.frame(commit_request("g", partitions), COMMIT))
    fitting = PENDING_SIZE_MAX_BYTES // size + 1
    commits = [client.frame(commit_request("g", partitions), COMMIT) for _ in range(2 * fitting)]
    client.connection.receive(b"".join(commits), NOW_MS)
    assert client.connection.state.name == "BLOCKED"
    assert len(client.connection.pending) == fitting
    assert len(client.synced()) == fitting
    assert len(client.synced()) == fitting
    assert client.connection.state.name == "READY"


def test_a_connection_sends_its_responses_before_it_closes(client: Client) -> None:
    """BA-12."""
    garbage = (4).to_bytes(4, "big") + b"\x7f\xff\0\0"
    assert client.send(client.commit(1), garbage) == []
    assert client.connection.close_reason is None
    client.log.settle()
    assert client.responses(client.connection.proceed(NOW_MS)) == [(1, {0})]
    assert client.connection.close_reason is not None


def pipelining() -> tuple[InMemoryBroker, RecordingLog]:
    """Return a broker with a topic and an offsets topic, and its log, which settles when the test calls that."""
    broker, log = InMemoryBroker(topics={"t": 1}), RecordingLog(waits=True)
    broker.state.cluster.ensure_offsets_topic(broker.clock.now_ms())
    broker.state.coordinator.log = log
    return broker, log


def errors_of(responses: Any) -> list[int]:
    return [response.topics[0].partitions[0].error_code for response in responses]


def test_a_commit_that_must_wait_for_replicas_keeps_its_place_behind_a_deferred_one() -> None:
    broker, log = pipelining()
    client = broker.connect()
    client.send(commit_request("g", {"t": {0: 1}}), 5)
    offsets_topic = broker.state.cluster.topics["__consumer_offsets"]
    offsets_topic.configs["min.insync.replicas"] = "2"
    for partition in offsets_topic.partitions:
        partition.replicas = [1, 2]
    for group_id in ("h", "i"):  # nothing is known of these groups yet
        client.send(commit_request(group_id, {"t": {0: 2}}), 5)
    assert not client.responses
    log.settle()
    broker.deliver()
    assert errors_of(client.responses) == [0]
    for count in (2, 3):  # the third request is handled when the second has its response
        broker.advance(milliseconds=4999)
        assert len(client.responses) == count - 1
        broker.advance(milliseconds=1)
        assert len(client.responses) == count
    assert errors_of(client.responses)[1:] == [15, 15]
    assert client.close_reason is None


@pytest.mark.parametrize(("quota", "throttle_ms"), [(50.0, 0), (0.001, 1000)])
def test_a_client_that_gets_a_quota_between_two_commits_gets_both_responses(quota: float, throttle_ms: int) -> None:
    broker, log = pipelining()
    SlowHandlers(broker, 0.01)
    client = broker.connect("app")
    client.send(commit_request("g", {"t": {0: 1}}), 5)
    set_quota(broker, "request_percentage", quota)
    client.send(commit_request("g", {"t": {0: 2}}), 5)
    assert not client.responses
    log.settle()
    broker.deliver()
    assert errors_of(client.responses) == [0, 0]
    throttled: Any = client.responses[1]
    assert throttled.throttle_time_ms == throttle_ms
    assert client.close_reason is None


def test_a_response_that_cannot_be_made_ends_its_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    """The log completes the responses of all connections in one go."""
    broker, log = pipelining()
    broken, other = broker.connect(), broker.connect()
    endpoints = broker.dispatcher.endpoints

    def fail() -> Any:
        raise RuntimeError("a defect")

    endpoints[COMMIT] = replace(endpoints[COMMIT], handle=lambda request, context: log.then(fail))
    broken.send(commit_request("g", {"t": {0: 1}}), COMMIT[1])
    del endpoints[COMMIT]
    other.send(commit_request("g", {"t": {0: 2}}), COMMIT[1])
    log.settle()
    broker.deliver()
    assert broken.close_reason == CLOSED_BY_DEFECT
    assert "RuntimeError: a defect" in caplog.text
    assert errors_of(other.responses) == [0]


@pytest.mark.parametrize("fails", [False, True])
def test_a_deferred_response_of_a_closed_connection_counts_nothing(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection has returned its counts: a later one would stay for ever. A defect is logged all the same."""
    client = Client()

    def fail() -> Any:
        raise RuntimeError("a defect")

    if fails:
        endpoints = client.dispatcher.endpoints
        endpoints[COMMIT] = replace(endpoints[COMMIT], handle=lambda request, context: client.log.then(fail))
    client.log.error = 56
    client.send(client.commit(1))
    client.connection.abandon()
    observations = client.dispatcher.observations
    observations.disconnected(client.connection.info)
    client.log.settle()
    assert not observations._live
    assert ("RuntimeError: a defect" in caplog.text) == fails


def test_a_commit_whose_offset_is_deleted_with_its_sync_gets_its_response() -> None:
    """The commit cache learns nothing from it."""
    broker, log = pipelining()
    client, other = broker.connect(), broker.connect()
    for offset in (1, 2):  # the cache looks at the second one
        client.send(commit_request("g", {"t": {0: offset}}), 5)
        if offset == 2:
            partition = OffsetDeleteRequestPartition(partition_index=0)
            topics = (OffsetDeleteRequestTopic(name="t", partitions=(partition,)),)
            other.send(OffsetDeleteRequest(group_id="g", topics=topics), 0)
        log.settle()
        broker.deliver()
    assert errors_of(client.responses) == [0, 0]
    assert client.close_reason is None
    assert len(other.responses) == 1
