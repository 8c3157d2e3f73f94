"""The commit cache changes no behavior (D13): two brokers get the same frames, one with the cache and one without.

Both brokers must return the same bytes, and have the same offsets and observations at the end. Hypothesis generates the
frames: few groups, topics and templates, so that commits repeat, mixed with all requests and events that can change the
effect of the next commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kproto.headers import request_frame
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto_server.clock import Clock, ClockMode
from kproto_server.cluster.cluster import Cluster
from kproto_server.commit_cache.cache import CommitCache
from kproto_server.commit_cache.entry import ENTRY_SIZE_BYTES
from kproto_server.configuration.settings import Settings
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.coordinator.expiration_task import ExpirationTask
from kproto_server.coordinator.groups import Group, GroupState, Member
from kproto_server.observation.observe import Observations
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.requests.context import ConnectionInfo
from kproto_server.state import BrokerState

if TYPE_CHECKING:
    from collections.abc import Callable

    Action = Callable[["Side"], bytes]

KAFKA_VERSION = KafkaVersion.named()
NOW_MS = 1_000
TOPICS = ("t", "u", "longer-topic-name")


class Side:
    """One broker with one connection to each of its two nodes, and a clock of its own."""

    def __init__(self, settings: dict[str, str], *, caches_commits: bool) -> None:
        made = Settings.from_mapping({"offsets.topic.replication.factor": "2", **settings}, KAFKA_VERSION)
        byte = iter(range(1, 1 << 30))
        addresses = [("127.0.0.1", 9092), ("127.0.0.1", 9093)]
        cluster = Cluster.of(
            addresses, kafka_version=KAFKA_VERSION, settings=made, random_bytes=lambda n: next(byte).to_bytes(n, "big")
        )
        self.state = BrokerState(KAFKA_VERSION, made, cluster)
        self.dispatcher = Dispatcher(self.state, Observations(), caches_commits=caches_commits)
        nodes = cluster.nodes.values()
        self.connections = [Connection(self.dispatcher, node, ConnectionInfo("/127.0.0.1")) for node in nodes]
        self.clock = Clock(NOW_MS, 0, ClockMode.parse("manual"))
        ExpirationTask(self.state.coordinator, self.clock).start()
        cluster.ensure_offsets_topic(0)
        for name in TOPICS:
            cluster.create_topic(name, partition_count=4)

    def send(self, node: int, frames: bytes) -> bytes:
        self.clock.advance(7)
        return self.connections[node].receive(frames, self.clock.now_ms())

    def coordinator_of(self, group: str) -> Connection:
        """Return the connection to the coordinator of a group; if there is none, to the first node."""
        coordinator = self.state.cluster.coordinator_of(group)
        return self.connections[0 if coordinator is None else coordinator.node_id - 1]

    def ask_coordinator(self, group: str, frames: bytes) -> bytes:
        return self.send(self.connections.index(self.coordinator_of(group)), frames)


groups = st.sampled_from(["g", "h", "billing", "h\u00e9gels", "a-group-with-a-rather-long-name"])
clients = st.sampled_from(["", "c", "consumer-billing-1"])
nodes = st.integers(0, 1)


@st.composite
def commits(draw: st.DrawFn) -> Action:
    """Return several commits of one template in one read; some templates are rejected or have a topic twice."""
    version = draw(st.sampled_from([2, 3, 4, 5, 8, 9, 1]))
    names = draw(st.lists(st.sampled_from([*TOPICS, *TOPICS, "unknown"]), min_size=1, max_size=2))
    indices = draw(st.sampled_from([(0,), (0, 1), (1, 0), (0, 1, 3), (0, 0), (0, 9), ()]))
    metadata = draw(st.sampled_from(["", None, "m", "x" * 5000]))
    member = draw(st.sampled_from(["", "", "member-1"]))
    generation = draw(st.sampled_from([-1, -1, -1, 0, 3]))
    retention_ms = draw(st.sampled_from([-1, 5, 0])) if 2 <= version <= 4 else -1
    group, client, node = draw(groups), draw(clients), draw(st.sampled_from([None, None, None, 0, 1]))
    offsets = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6))

    def frame(offset: int, correlation_id: int) -> bytes:
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
            for index in indices
        )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            retention_time_ms=retention_ms,
            topics=tuple(OffsetCommitRequestTopic(name=name, partitions=partitions) for name in names),
        )
        return request_frame(request, version, correlation_id=correlation_id, client_id=client)

    data = b"".join(frame(offset, place) for place, offset in enumerate(offsets))
    return lambda side: side.ask_coordinator(group, data) if node is None else side.send(node, data)


def fetch(group: str, node: int) -> Action:
    return lambda side: side.send(
        node, request_frame(OffsetFetchRequest(group_id=group, topics=None), 5, correlation_id=1)
    )


def delete_offset(group: str) -> Action:
    partition = (OffsetDeleteRequestPartition(partition_index=0),)
    topics = (OffsetDeleteRequestTopic(name="t", partitions=partition),)
    request = OffsetDeleteRequest(group_id=group, topics=topics)
    return lambda side: side.ask_coordinator(group, request_frame(request, 0, correlation_id=2))


def delete_group(group: str) -> Action:
    request = DeleteGroupsRequest(groups_names=(group,))
    return lambda side: side.ask_coordinator(group, request_frame(request, 1, correlation_id=3))


def delete_topic(name: str) -> Action:
    request = DeleteTopicsRequest(topic_names=(name,), timeout_ms=1000)
    return lambda side: side.send(0, request_frame(request, 1, correlation_id=4))


def create_topic(name: str) -> Action:
    def act(side: Side) -> bytes:
        side.state.cluster.create_topic(name, partition_count=2)
        return b""

    return act


def stop_and_start(node_id: int) -> Action:
    def act(side: Side) -> bytes:
        side.state.cluster.stop_node(node_id)
        side.state.cluster.start_node(node_id)
        return b""

    return act


def registered(side: Side, group: str) -> Group | None:
    """Return an existing group, registered so that it can have members."""
    if side.state.coordinator.group(group) is None:
        return None
    return side.state.coordinator.groups.get(group) or side.state.coordinator.groups.create(group, side.clock.now_ms())


def join(group: str) -> Action:
    """Add a member to the group, which then rejects simple commits (OC-22)."""

    def act(side: Side) -> bytes:
        known = registered(side, group)
        if known is not None:
            known.add_member(Member("member-1"))
            known.generation = 3
            known.transition_to(GroupState.STABLE, side.clock.now_ms())
        return b""

    return act


def leave(group: str) -> Action:
    """Remove the last member, which changes when offsets expire (EX-21)."""

    def act(side: Side) -> bytes:
        known = registered(side, group)
        if known is not None:
            known.members.clear()
            known.protocol_type = "consumer"
            known.transition_to(GroupState.EMPTY, side.clock.now_ms())
        return b""

    return act


def wait(duration_ms: int) -> Action:
    """Advance the clock, so that offsets and groups expire."""

    def act(side: Side) -> bytes:
        side.clock.advance(duration_ms)
        return b""

    return act


MINUTE_MS = 60_000

disturbances = st.one_of(
    st.builds(fetch, groups, nodes),
    st.builds(delete_offset, groups),
    st.builds(delete_group, groups),
    st.builds(delete_topic, st.sampled_from(TOPICS)),
    st.builds(create_topic, st.sampled_from(TOPICS)),
    st.builds(stop_and_start, st.integers(1, 2)),
    st.builds(join, groups),
    st.builds(leave, groups),
    st.builds(wait, st.sampled_from([5, 600, MINUTE_MS - 2000, MINUTE_MS, MINUTE_MS + 1000])),
)


@settings(max_examples=400)
@given(
    st.lists(commits(), min_size=1, max_size=3),
    st.lists(disturbances, max_size=6),
    st.sampled_from(["ignore", "honour"]),
)
def test_responses_and_offsets_are_the_same_with_and_without_the_cache(
    templates: list[Action], between: list[Action], override: str
) -> None:
    configured = {
        "offsets.retention.override": override,
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": "500",
    }
    sides = Side(configured, caches_commits=True), Side(configured, caches_commits=False)
    # The cache adds an entry for the second equal commit and uses the entry from the third on. Both happen before and
    # after each disturbance.
    for action in [*templates * 3, *(step for disturbance in between for step in (disturbance, *templates * 2))]:
        remembered, plain = (action(side) for side in sides)
        assert remembered == plain
    stored = [
        {
            group.group_id: side.state.coordinator.offsets.of_group(group.group_id)
            for group in list(side.state.coordinator.all_groups())
        }
        for side in sides
    ]
    assert stored[0] == stored[1]
    assert sides[0].dispatcher.observations.snapshot() == sides[1].dispatcher.observations.snapshot()


def test_cached_commits_postpone_the_expiration_of_a_group() -> None:
    """The retention of each commit begins at its own time, without a lookup since (EX-21 row 1)."""
    side = Side({"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "500"}, caches_commits=True)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
    frame = request_frame(OffsetCommitRequest(group_id="g", topics=topics), 8, correlation_id=1, client_id="c")
    for _ in range(5):
        side.ask_coordinator("g", frame)
        side.clock.advance(MINUTE_MS - 2000)
    assert side.state.coordinator.group("g") is not None
    side.clock.advance(2500)
    assert side.state.coordinator.group("g") is None
    assert len(side.state.coordinator.offsets) == 0


def simple_commit(group: str, version: int = 8, client_id: str | None = "c") -> bytes:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
    request = OffsetCommitRequest(group_id=group, topics=topics)
    return request_frame(request, version, correlation_id=1, client_id=client_id)


@pytest.mark.parametrize("version", [3, 8])
@pytest.mark.parametrize("client_id", [None, "", "c"])
def test_the_cache_responds_to_the_third_commit_of_a_group(version: int, client_id: str | None) -> None:
    side = Side({}, caches_commits=True)
    frame = simple_commit("g", version, client_id)
    connection = side.coordinator_of("g")
    cache = CommitCache(side.dispatcher.cached_commits, side.dispatcher.observations, connection.node, connection.info)
    for _ in range(2):
        assert cache.look_up(frame[4:], NOW_MS) is None
        connection.receive(frame, NOW_MS)
    assert cache.look_up(frame[4:], NOW_MS) == connection.receive(frame, NOW_MS)


def test_the_size_of_the_cache_is_limited_and_used_entries_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side({}, caches_commits=True)
    commits = side.dispatcher.cached_commits
    assert commits is not None
    node = side.connections[0].node
    mine = [g for g in (f"g{n:03}" for n in range(400)) if side.state.cluster.coordinator_of(g) is node][:100]
    size = ENTRY_SIZE_BYTES + len(simple_commit("g000")[4:])
    monkeypatch.setattr("kproto_server.commit_cache.cached_commits.ENTRIES_SIZE_MAX_BYTES", 60 * size)

    def cached() -> set[str]:
        return {group for group in mine if commits.find(simple_commit(group)[4:]) is not None}

    for _ in range(4):
        for group in mine:
            side.send(0, simple_commit(group))
    assert cached() == set(mine[:60]), "the others are committed as often, and later"
    for _ in range(8):
        for group in mine[60:]:
            side.send(0, simple_commit(group))
    assert cached() > set(mine[60:]), "the first groups do not commit any more"
    assert len(cached()) == 60
    fetched = [len(side.state.coordinator.offsets.of_group(group)) for group in mine]
    assert fetched == [1] * len(mine)


def test_a_group_id_that_is_not_utf_8_is_another_group() -> None:
    """Bytes that are not UTF-8 decode to another string, so the cache does not confuse groups of the same length."""
    sides = Side({}, caches_commits=True), Side({}, caches_commits=False)
    text = "\ufffd\ufffd".encode()
    known, strange = simple_commit("\ufffd\ufffd", 3), simple_commit("\ufffd\ufffd", 3)
    strange = strange.replace(text, b"\xef\xbf\xbd\xf0\x90\x80")
    other = simple_commit("abcdef", 3)
    for frame in [known] * 3 + [other] * 3 + [strange] * 3 + [other, known]:
        responses = [side.send(node, frame) for side in sides for node in (0, 1)]
        assert responses[:2] == responses[2:]
