"""What ends share sessions and members of share groups, and how many there may be."""

from __future__ import annotations

from functools import partial

from kproto.codes import ErrorCode
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k78_share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from kproto_server.releases.kafka_version import KafkaVersion
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
