"""What ends share sessions and members of share groups, and how many there may be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.headers import request_frame
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k77_share_group_describe import ShareGroupDescribeRequest
from kproto.messages.k78_share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.handlers import k78_share_fetch
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.requests.context import ConnectionInfo
from kproto_server.share_groups import sessions
from kproto_server.share_groups.group import ShareGroup
from kproto_server.share_groups.share_partition import ACCEPT
from kproto_server.testing.in_memory import ConnectedPair, InMemoryBroker
from tests.membership.in_memory_transport import InMemoryTransport
from tests.robustness.steps import GROWTH_MAX, count_steps
from tests.share_groups.scripts import start
from tests.share_groups.sharers import Sharers

GROUP = "g"
SESSION_MS = 45_000


def broker(**settings: str) -> InMemoryBroker:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    made = InMemoryBroker(kafka_version="4.4", topics={"t": 1}, settings=given)
    assert made.state.cluster.ensure_offsets_topic(made.clock.now_ms())
    return made


def join(pair: ConnectedPair, member: str, epoch: int = 0) -> int:
    topics = ("t",) if epoch == 0 else None
    request = ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
    )
    code: int = pair.ask(request, 1).error_code  # type: ignore[attr-defined]
    return code


def open_session(pair: ConnectedPair, member: str, at: InMemoryBroker) -> int:
    topic = FetchTopic(
        topic_id=at.state.cluster.topics["t"].topic_id,
        partitions=(FetchPartition(partition_index=0, acknowledgement_batches=()),),
    )
    request = ShareFetchRequest(
        group_id=GROUP,
        member_id=member,
        share_session_epoch=0,
        max_wait_ms=0,
        min_bytes=1,
        max_records=10,
        batch_size=10,
        topics=(topic,),
        forgotten_topics_data=(),
    )
    code: int = pair.ask(request, 2).error_code  # type: ignore[attr-defined]
    return code


def test_the_number_of_sessions_is_limited_and_a_session_ends_with_its_connection() -> None:
    at = broker(group_share_max_share_sessions="2", group_share_max_size="2")
    first, second = at.connect(), at.connect()
    assert [open_session(first, member, at) for member in "ABC"] == [0, 0, ErrorCode.SHARE_SESSION_LIMIT_REACHED]
    first.close()
    assert len(at.state.share_groups.sessions(1)) == 0
    assert open_session(second, "C", at) == 0


def test_a_session_that_has_no_room_is_refused_after_the_wait() -> None:
    """Measured on 4.2.2 and 4.4.0: a client sends the request again and again."""
    at = broker(group_share_max_share_sessions="1", group_share_max_size="1")
    pair = at.connect()
    assert open_session(pair, "A", at) == 0
    pair.send(fetch_of(at, 0, (0,), max_wait_ms=500).replace(member_id="B"), 2)
    at.advance(milliseconds=499)
    assert not pair.responses
    at.advance(milliseconds=1)
    assert [one.error_code for one in pair.responses] == [ErrorCode.SHARE_SESSION_LIMIT_REACHED]  # type: ignore[attr-defined]


def test_the_number_of_members_is_limited_and_their_sessions_end() -> None:
    at = broker(group_share_max_size="2")
    pair = at.connect()
    assert [join(pair, member) for member in "ABC"] == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED]
    group = at.state.share_groups.members.known(GROUP)
    assert isinstance(group, ShareGroup)
    at.advance(milliseconds=SESSION_MS - 1)
    assert join(pair, "B", group.data.members["B"].epoch) == 0
    at.advance(milliseconds=1)
    assert list(group.members) == ["B"]
    at.advance(milliseconds=SESSION_MS)
    assert not group.members


def test_a_broker_without_share_groups_does_not_import_them() -> None:
    """Nor does it serve them: `share.version` is 0 in 4.1."""
    at = InMemoryBroker(kafka_version="4.1", topics={"t": 1})
    assert at.state.used_share_groups is None
    assert join(at.connect(), "A") == ErrorCode.UNSUPPORTED_VERSION
    describe = ShareGroupDescribeRequest(group_ids=("g",), include_authorized_operations=False)
    described: Any = at.connect().ask(describe, 1)
    (group,) = described.groups
    # ShareGroupDescribeRequest.getErrorResponse has no message.
    assert (group.error_code, group.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)


def test_a_fetch_whose_acknowledgements_are_fenced_acquires_nothing() -> None:
    """As random scripts beside a real 4.4.0 do: the next fetch loads the share partition again."""
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    start(share)
    share.produce(3)
    share.fetch("A")
    share.heartbeat("A", epoch=-1)
    share.alter_offsets({"t": {0: 1}})
    share.join("A")
    share.fetch("A", acks={0: [(0, 0, [ACCEPT])]}, wait_ms=0)
    (fenced,) = share.steps[-1].responses["A"][0]["responses"][0]["partitions"]
    assert fenced["acknowledge_error_code"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert "acquired_records" not in fenced
    share.fetch("A", wait_ms=0)
    (loaded,) = share.steps[-1].responses["A"][0]["responses"][0]["partitions"]
    assert [one["first_offset"] for one in loaded["acquired_records"]] == [1]


def test_a_fetch_takes_time_in_proportion_to_the_partitions_of_its_session() -> None:
    """Each partition looked at all before it: 1 s for 5000 partitions without records."""
    steps = []
    for count in (40, 80, 160):
        share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
        start(share, count)
        steps.append(count_steps(partial(share.fetch, "A", wait_ms=0)))
    assert steps[2] - steps[1] < GROWTH_MAX * (steps[1] - steps[0])


def fetch_of(at: InMemoryBroker, epoch: int, partitions: Sequence[int], **fields: int) -> ShareFetchRequest:
    """Return a request that adds partitions to the session of member A."""
    topic = FetchTopic(
        topic_id=at.state.cluster.topics["t"].topic_id,
        partitions=tuple(FetchPartition(partition_index=one, acknowledgement_batches=()) for one in partitions),
    )
    request = ShareFetchRequest(
        group_id=GROUP,
        member_id="A",
        share_session_epoch=epoch,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=10,
        batch_size=10,
        topics=(topic,) if partitions else (),
        forgotten_topics_data=(),
    )
    return request.replace(**fields)


def with_session(partition_count: int) -> tuple[InMemoryBroker, ConnectedPair]:
    """Return a broker, and the connection of a member whose session has all partitions, which are loaded."""
    at = InMemoryBroker(kafka_version="4.4", topics={"t": partition_count})
    for name in ("__consumer_offsets", "__share_group_state"):
        assert at.state.cluster.ensure_internal_topic(name, at.clock.now_ms())
    pair = at.connect()
    assert join(pair, "A") == 0
    opened: Any = pair.ask(fetch_of(at, 0, range(partition_count)), 2)
    assert opened.error_code == 0
    assert {one.error_code for one in opened.responses[0].partitions} == {0}
    return at, pair


def produce(at: InMemoryBroker, size_bytes: int, partition: int = 0) -> None:
    data = PartitionProduceData(index=partition, records=build_record_batch([Record(None, bytes(size_bytes))]))
    topics = (TopicProduceData(name="t", partition_data=(data,)),)
    at.connect().ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 9)


def slices_of_fetch(partition_count: int) -> list[int]:
    """Return the steps of each slice of a fetch of a session whose partitions are loaded."""
    at, _ = with_session(partition_count)
    dispatcher = Dispatcher(at.state, at.observations, takes_turns=True)
    connection = Connection(dispatcher, at.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    data = request_frame(fetch_of(at, 1, ()), 2, correlation_id=1)
    responses: list[bytes] = []
    steps = [count_steps(lambda: responses.append(connection.receive(data, 0)))]
    while dispatcher.turns:
        dispatcher.give_turn()
        dispatcher.take_runnable()
        steps.append(count_steps(lambda: responses.append(connection.resume(0))))
    assert b"".join(responses)
    return steps


def test_a_fetch_of_a_loaded_session_is_served_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k78_share_fetch, "SLICE_PARTITIONS", 20)
    few, many = slices_of_fetch(60), slices_of_fetch(120)
    assert [len(few), len(many)] == [1 + 2 * 60 // 20, 1 + 2 * 120 // 20], "partitions are loaded, then read"
    assert max(many) < 1.5 * max(few)


def test_records_wake_a_fetch_without_a_look_at_its_other_partitions() -> None:
    """Each Produce looked at all of them: 150 ms for a session of 40,000 partitions."""
    steps = []
    for count in (50, 100):
        at, pair = with_session(count)
        pair.send(fetch_of(at, 1, (), max_wait_ms=1000, min_bytes=10_000), 2)
        steps.append(count_steps(partial(at.state.cluster.topics["t"].partitions[7].data.notify_waiters)))
        assert not pair.responses
    assert steps[0] == steps[1]


def test_a_fetch_waits_on_for_enough_records() -> None:
    at, pair = with_session(k78_share_fetch.SMALL_PARTITIONS + 1)
    pair.send(fetch_of(at, 1, (), max_wait_ms=1000, min_bytes=500), 2)
    produce(at, 100)
    at.advance(milliseconds=999)
    assert not pair.responses
    produce(at, 500, 1)
    (response,) = pair.responses
    assert [one.partition_index for one in response.responses[0].partitions] == [1, 0]  # type: ignore[attr-defined]
    pair.responses.clear()
    pair.send(fetch_of(at, 2, (), max_wait_ms=1000, min_bytes=500), 2)
    produce(at, 100, 2)
    at.advance(milliseconds=1000)
    (response,) = pair.responses
    assert [one.partition_index for one in response.responses[0].partitions] == [2]  # type: ignore[attr-defined]


def test_sessions_have_few_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SESSION_PARTITIONS_MAX", 4)
    monkeypatch.setattr(sessions, "PARTITIONS_MAX", 6)
    at, pair = with_session(3)

    def error(epoch: int, partitions: Sequence[int], member: str = "A") -> int:
        response: Any = pair.ask(fetch_of(at, epoch, partitions).replace(member_id=member), 2)
        return int(response.error_code)

    assert error(1, (3, 4)) == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert error(1, (0, 1, 2, 3)) == 0
    assert error(0, range(5), "B") == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert error(0, range(3), "B") == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert error(0, range(2), "B") == 0
    assert error(1, range(3), "B") == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert error(-1, (), "A") == 0
    assert error(1, range(3), "B") == 0
