"""Everything that clients can make grow has a bound or expires: the tests of the table in server/README.md.

Method: for each row more than the bound is sent, most of it without sockets; some bounds are lowered for it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kproto.codes import ErrorCode
from kproto.headers import request_frame
from kproto.messages.k00_produce import ProduceRequest
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k07_controlled_shutdown import ControlledShutdownRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.records import partitioning
from kproto.records.partitioning import CACHED_LENGTH_MAX, partition_for
from kproto_server import Broker
from kproto_server.clock import PURGE_MIN, Clock, ClockMode
from kproto_server.cluster import cluster as cluster_module
from kproto_server.commit_cache import cached_commits
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import ENDPOINTS_MAX, WARNINGS_MAX, Dispatcher
from kproto_server.connection.logged_connection import LoggedConnection
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.membership.responses import EARLIER_MIN, PendingResponse, SyncResult
from kproto_server.log_manager.retention_task import ProducerExpirationTask
from kproto_server.observation import observe
from kproto_server.observation.observe import Observations, shortened
from kproto_server.observation.request_log import SIZE_MAX_BYTES, RequestLog
from kproto_server.partition_log import fetch_sessions
from kproto_server.partition_log.fetch_sessions import EVICTION_MS, FetchSession, FetchSessionCache, RequestedPartition
from kproto_server.partition_log.producers import BatchMetadata
from kproto_server.requests.context import ConnectionInfo
from tests.coordinator.broker_state import NOW_MS, ask, commit_request, new_state
from tests.coordinator.membership.group_driver import GroupDriver
from tests.network.raw_client import RawClient
from tests.network.requests import create_topic, find_coordinator, long_poll
from tests.waiting import wait_until

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


# Observations.


def rows(observations: Observations) -> int:
    """Return the number of counts and client ids that are stored."""
    tallies = [*observations._live.values(), *observations._gone.values()]
    return sum(
        len(table)
        for tally in tallies
        for table in (tally.client_ids, tally.requests, tally.errors, tally.commits, tally.closed, tally.repeated)
    )


def test_long_names_are_shortened_and_stay_different() -> None:
    names = [f"{'x' * 32_000}{number}" for number in range(100)]
    short = [shortened(name) for name in names]
    assert len(set(short)) == 100
    assert max(map(len, short)) < 300
    assert shortened("consumer-billing-1") == "consumer-billing-1"


def test_software_names_of_closed_connections_are_limited() -> None:
    observations = Observations()
    for number in range(3 * observe.SOFTWARE_MAX):
        info = ConnectionInfo("/127.0.0.1", software_name=f"name-{number}", software_version="1")
        observations.request(info, "c", 3, 1)
        observations.disconnected(info)
    assert len(observations._gone) == observe.SOFTWARE_MAX + 1
    counted = sum(request.count for client in observations.snapshot().clients for request in client.requests)
    assert counted == 3 * observe.SOFTWARE_MAX
    assert observe.OTHER_SOFTWARE in {client.software_name for client in observations.snapshot().clients}


@pytest.mark.parametrize("closes", [True, False])
def test_counts_of_all_connections_together_are_limited(closes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "SHARED_ROWS_MAX", 1000)
    observations = Observations()
    infos = [ConnectionInfo("/127.0.0.1", software_name="name", software_version="1") for _ in range(20)]
    sent = 0
    for number, info in enumerate(infos):
        for nth in range(200):
            client_id = f"client {number} {nth}"
            observations.request(info, client_id, 3, nth % 3)
            observations.errors(info, client_id, 8, 2, [nth % 90 + 1])
            observations.closed(info, client_id, 3, 1, f"reason {client_id}" * 100)
            observations.repeated(info, client_id, 8, 2, None, -1)
            observations.commit_layout(info, client_id, 4, "released", -1)
            sent += 1
        if closes:
            observations.disconnected(info)
    assert rows(observations) < 1000 + 20 * (observe.OWN_ROWS_MAX + 300)
    clients = observations.snapshot().clients
    assert sum(request.count for client in clients for request in client.requests) == sent
    assert sum(error.count for client in clients for error in client.errors) == sent
    assert sum(closed.count for client in clients for closed in client.closed) == sent
    assert sum(commits.count for client in clients for commits in client.commits) == sent


def test_a_connection_that_ends_returns_its_counts() -> None:
    """However often clients connect, what they all have in common is counted once."""
    observations = Observations()
    for _ in range(3000):
        info = ConnectionInfo("/127.0.0.1", software_name="name", software_version="1")
        for nth in range(100):
            observations.request(info, f"client {nth}", 3, 1)
        observations.disconnected(info)
    assert rows(observations) == 200
    assert len(observations.snapshot().clients) == 100


def test_ten_thousand_connections_with_usual_requests_are_counted_exactly() -> None:
    observations = Observations()
    infos = [ConnectionInfo("/127.0.0.1") for _ in range(10_000)]
    for number, info in enumerate(infos):
        for api_key in range(20):
            observations.request(info, f"client {number}", api_key, 1)
    assert observations._shared.left == observe.SHARED_ROWS_MAX


# Requests kept for tests.


def test_requests_without_a_response_do_not_stay() -> None:
    """Produce with acks=0: the log has dropped them, and the connection has only what matches a response."""
    state = new_state()
    dispatcher = Dispatcher(state, Observations())
    log = RequestLog()
    connection = LoggedConnection(dispatcher, state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"), log)
    frame = request_frame(
        ProduceRequest(acks=0, timeout_ms=0, topic_data=()), 7, correlation_id=0, client_id="c" * 30_000
    )
    gc.collect()
    for _ in range(2 * SIZE_MAX_BYTES // len(frame)):
        assert connection.receive(frame, NOW_MS) == b""
    alive = [entry for _, ref in connection._open_requests if (entry := ref()) is not None]
    assert len(connection._open_requests) > len(alive) == len(log.entries())
    assert sum(entry.size_bytes for entry in alive) <= SIZE_MAX_BYTES


# Groups and members.


def test_member_ids_that_are_not_used_expire() -> None:
    """GP-14: at the session timeout."""
    driver = GroupDriver()
    for _ in range(1000):
        driver.join(requires_known_member_id=True)
    assert len(driver.group.pending_members) == 1000
    driver.pass_time(10_000)
    assert driver.group_state is GroupState.EMPTY
    assert not driver.group.pending_members


@pytest.mark.parametrize("kafka_version", ["2.4", "latest"])
def test_groups_without_members_and_offsets_expire(kafka_version: str) -> None:
    """Those of clients that asked for a member id, and those whose first commit was refused."""
    with Broker.running(clock="manual", kafka_version=kafka_version) as broker:
        with RawClient(broker.bootstrap_servers) as client:
            create_topic(client)
            find_coordinator(client, "g")
            for number in range(200):
                join = JoinGroupRequest(
                    group_id=f"join-{number}",
                    session_timeout_ms=10_000,
                    rebalance_timeout_ms=10_000,
                    member_id="",
                    protocol_type="consumer",
                    protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
                )
                assert client.ask(join, 4).error_code == ErrorCode.MEMBER_ID_REQUIRED
                client.ask(commit_request(f"commit-{number}", {"t": {0: (1, "x" * 10_000)}}), 2)
        assert broker._call(lambda server: len(server.state.coordinator.groups)) >= 200
        broker.clock.advance(minutes=20)
        assert broker._call(lambda server: len(server.state.coordinator.groups)) == 0


def test_repeated_requests_of_one_member_are_completed_without_recursion() -> None:
    driver = GroupDriver()
    leader, follower = driver.stable_with(2)
    responses = [driver.join(leader) for _ in range(5000)]
    driver.join(follower)
    assert {response.result and response.result.generation for response in responses} == {2}


def test_repeated_requests_of_ended_connections_are_dropped() -> None:
    newest: PendingResponse[SyncResult] = PendingResponse()
    for _ in range(5000):
        before, newest = newest, PendingResponse()
        newest.supersede(before)
        before.completion.is_abandoned = True
    assert newest._earlier is not None
    assert len(newest._earlier) < EARLIER_MIN


# Producers, fetch sessions, topics.


def test_producers_expire() -> None:
    """After `producer.id.expiration.ms`, checked every `producer.id.expiration.check.interval.ms`."""
    clock = Clock(NOW_MS, 0, ClockMode.parse("manual"))
    settings = {"producer.id.expiration.ms": "60000", "producer.id.expiration.check.interval.ms": "1000"}
    state = new_state(clock=clock, settings=settings)
    ProducerExpirationTask(state.settings, state.cluster.topics, clock).start()
    producers = state.cluster.topics["t"].partitions[0].make_data().known_producers
    for producer_id in range(500):
        producers.add(producer_id, 0, BatchMetadata(0, 0, producer_id, NOW_MS), clock.now_ms())
        producers.begin_verification(1000 + producer_id, 0, 0, clock.now_ms())
    clock.advance(59_000)
    producers.add(7, 0, BatchMetadata(1, 1, 500, NOW_MS), clock.now_ms())
    assert len(producers) == 1000
    clock.advance(1000)
    clock.advance(1000)
    assert [producer_id for producer_id, _ in producers.items()] == [7]
    clock.advance(DAY_MS)
    assert len(producers) == 0


@pytest.mark.parametrize(("kafka_version", "days"), [("3.3", 7), ("3.4", 1), ("latest", 1)])
def test_the_default_of_producer_expiration(kafka_version: str, days: int) -> None:
    state = new_state(kafka_version)
    assert state.settings.current.int("producer.id.expiration.ms") == days * DAY_MS
    listed = [entry.name for entry in state.settings.current.entries() if entry.name.startswith("producer.id")]
    assert listed == ([] if days == 7 else ["producer.id.expiration.ms"])


def fetch(partitions: Iterator[int] | range, session_id: int = 0, session_epoch: int = 0) -> FetchRequest:
    named = tuple(FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1) for index in partitions)
    topics = (FetchTopic(topic="t", partitions=named),)
    return FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=session_epoch, topics=topics)


def test_fetch_sessions_have_few_partitions_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 100)
    state = new_state()
    cache = state.log_manager.fetch_sessions(1)
    opened = [ask(state, fetch(range(30)), 7).session_id for _ in range(5)]
    assert [bool(session_id) for session_id in opened] == [True, True, True, False, False]
    first = opened[0]
    assert ask(state, fetch(range(30, 40), first, 1), 7).error_code == 0
    assert cache.partition_count == 100
    grown = ask(state, fetch(range(40, 41), first, 2), 7)
    assert grown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (cache.partition_count, len(cache)) == (60, 2)
    assert ask(state, fetch(range(40)), 7).session_id, "the consumer starts again with a full request"
    for session_id in opened[1:3]:
        assert ask(state, fetch(range(1), session_id, -1), 7).error_code == 0
    assert cache.partition_count == 40


def requested(indexes: range) -> list[RequestedPartition]:
    (topic,) = fetch(indexes).topics
    return [RequestedPartition("t", bytes(16), partition) for partition in topic.partitions]


def test_unused_fetch_sessions_make_room_for_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers that were killed leave their sessions: no other consumer ever got one."""
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 100)
    cache = FetchSessionCache(10, iter(range(1, 100)).__next__)

    def opens(indexes: range, now_ms: int) -> FetchSession | None:
        return cache.open(requested(indexes), now_ms, by_topic_id=False)

    assert all([opens(range(50), 0), opens(range(50), 0)])
    assert opens(range(60), EVICTION_MS) is None
    session = opens(range(60), EVICTION_MS + 1)
    assert session is not None
    assert (len(cache), cache.partition_count) == (1, 60), "both had to go"
    assert opens(range(40), EVICTION_MS + 1)
    assert cache.update(session, requested(range(60)), ()), "offsets that move are no new partitions"
    assert not cache.update(session, requested(range(61)), ())
    session = opens(range(60), EVICTION_MS + 2)
    assert session is not None
    session.last_used_ms = 2 * EVICTION_MS + 2
    assert cache.update(session, requested(range(61)), ()), "the other one is unused"
    assert (len(cache), cache.partition_count) == (1, 61)


def test_fetch_sessions_in_use_are_not_evicted() -> None:
    cache = FetchSessionCache(1, iter(range(1, 100)).__next__)
    session = cache.open(requested(range(1)), 0, by_topic_id=False)
    assert session is not None
    for now_ms in range(0, 10 * EVICTION_MS, EVICTION_MS):
        assert cache.resume(session.session_id, session.epoch, now_ms, by_topic_id=False) is session
        assert cache.open(requested(range(5)), now_ms, by_topic_id=False) is None


def test_topics_have_few_partitions_together(monkeypatch: pytest.MonkeyPatch) -> None:
    state = new_state()
    present = state.cluster.partition_count
    assert present == sum(len(topic.partitions) for topic in state.cluster.topics.values())
    monkeypatch.setattr(cluster_module, "PARTITIONS_MAX", present + 3)
    for name in ("a", "b", "c", "d", "e"):
        ask(state, MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 1)
    assert {"a", "b", "c"} == state.cluster.topics.keys() & {"a", "b", "c", "d", "e"}
    new = CreatableTopic(name="d", num_partitions=1, replication_factor=1, assignments=(), configs=())
    (created,) = ask(state, CreateTopicsRequest(topics=(new,), timeout_ms=1000), 4).topics
    assert created.error_code == ErrorCode.POLICY_VIOLATION
    more = CreatePartitionsTopic(name="a", count=2, assignments=None)
    (grown,) = ask(state, CreatePartitionsRequest(topics=(more,), timeout_ms=1000, validate_only=False), 0).results
    assert grown.error_code == ErrorCode.POLICY_VIOLATION
    state.cluster.delete_topic("a")
    ask(state, MetadataRequest(topics=(MetadataRequestTopic(name="d"),)), 1)
    assert "d" in state.cluster.topics


# Caches, endpoints, timers.


def test_partitions_of_long_keys_are_not_kept() -> None:
    """Any client may ask for the coordinators of ids of 32 KB that are in no group."""
    before = partitioning._cached_partition.cache_info().currsize
    for length in (CACHED_LENGTH_MAX + 1, 32_767):
        assert 0 <= partition_for("x" * length, 50) < 50
    assert partitioning._cached_partition.cache_info().currsize == before


def test_templates_of_the_commit_cache_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_commits, "TEMPLATES_ALL_MAX", 50)
    state = new_state()
    dispatcher = Dispatcher(state, Observations())
    connection = Connection(dispatcher, state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    for length in range(200):
        commit = commit_request("g", {"t": {0: (1, "x" * length)}})
        for _ in range(2):
            response = connection.receive(request_frame(commit, 2, correlation_id=0, client_id="c"), NOW_MS)
            assert isinstance(response, bytes)
    cache = dispatcher.cached_commits
    assert cache is not None
    stored = sum(map(len, cache._templates.values()))
    assert 0 < stored == cache._template_count <= 50
    assert len(cache._templates) <= 51


def test_endpoints_of_versions_that_no_client_has_are_limited() -> None:
    """ApiVersions has a response to every version."""
    dispatcher = Dispatcher(new_state(), Observations())
    for version in range(32_768):
        assert dispatcher.endpoints[ApiVersionsRequest._api_key, version].api_version == version
    assert len(dispatcher.endpoints) <= ENDPOINTS_MAX


def test_warnings_of_apis_that_do_nothing_are_limited() -> None:
    state = new_state("2.8")
    dispatcher = Dispatcher(state, Observations())
    connection = Connection(dispatcher, state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    request = ControlledShutdownRequest(broker_id=9)
    for number in range(WARNINGS_MAX + 10):
        client_id = f"{'c' * 1000} {number}"
        assert connection.receive(request_frame(request, 1, correlation_id=0, client_id=client_id), NOW_MS)
    assert len(dispatcher._warned) == WARNINGS_MAX
    assert max(len(name) for _, name in dispatcher._warned) < 300


@pytest.mark.parametrize("mode", ["real", "manual", "auto", "scaled:0.001"])
def test_canceled_timers_do_not_stay(mode: str) -> None:
    """As those of long polls that records end; each would stay until its time has come."""
    clock = Clock(NOW_MS, 0, ClockMode.parse(mode))
    kept = [clock.call_at(NOW_MS + HOUR_MS, lambda: None) for _ in range(10)]
    for _ in range(20 * PURGE_MIN):
        clock.call_at(NOW_MS + HOUR_MS, lambda: None, for_client=True).cancel()
    assert clock.entry_count <= 2 * (PURGE_MIN + len(kept) + 1)
    assert all(timer.action is not None for timer in kept)


# Connections.


def test_closed_connections_leave_nothing() -> None:
    """Neither in the table of connections nor in that of addresses, the observations or the timers."""
    with Broker.running(clock="manual") as broker:
        with RawClient(broker.bootstrap_servers) as first:
            create_topic(first)
        for number in range(300):
            client = RawClient(broker.bootstrap_servers, client_id="c")
            client.send((long_poll(HOUR_MS), 4))
            (client.socket.close, client.reset)[number % 2]()

        def left() -> tuple[int, int, int]:
            return broker._call(
                lambda server: (
                    sum(len(listener.transports) for listener in server.nodes.listeners.values()),
                    sum(len(listener._counts) for listener in server.nodes.listeners.values()),
                    len(server.observations._live),
                )
            )

        wait_until(lambda: left() == (0, 0, 0), f"the end of all connections: {left()}")
        waiters = broker._call(lambda server: len(server.state.cluster.topics["t"].partitions[0].data.waiters))
        assert waiters == 0
