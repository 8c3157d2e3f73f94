"""What a heartbeat of a share group costs: as much as its topics, not as their square."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto_server.deferred import DelayedOperation, at_once
from kproto_server.share_groups import members
from kproto_server.share_groups.assignor import assign
from kproto_server.share_groups.data import TopicPartitions
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import ask
from tests.robustness.steps import GROWTH_MAX, CountedId, count_steps, growth


def steps_of_assigning_heartbeat(topic_count: int) -> int:
    """Return the steps of the heartbeat with which a member gets the partitions of so many topics."""
    names = tuple(f"topic-{number}" for number in range(topic_count))
    at = InMemoryBroker(kafka_version="4.4", topics=dict.fromkeys(names, 1))
    for name in ("__consumer_offsets", "__share_group_state"):
        at.state.cluster.ensure_internal_topic(name, at.clock.now_ms())
    for name in names:
        topic = at.state.cluster.topics[name]
        topic.topic_id = CountedId(topic.topic_id)
    pair = at.connect()
    join = ShareGroupHeartbeatRequest(group_id="g", member_id="A", member_epoch=0, subscribed_topic_names=names)
    joined: Any = pair.ask(join, 1)
    at.advance(milliseconds=2_000)  # until targets may be computed again
    steps = count_steps(
        partial(pair.send, join.replace(member_epoch=joined.member_epoch, subscribed_topic_names=None), 1)
    )
    response: Any = pair.responses.pop()
    assert len(response.assignment.topic_partitions) == topic_count
    return steps


def steps_of_assignor(topic_count: int, *, is_even: bool) -> int:
    """Return the steps of a new assignment, of topics that members have shared out."""
    topics = [number.to_bytes(16, "big") for number in range(topic_count)]
    initialized = {topic_id: TopicPartitions("t", frozenset((0, 1))) for topic_id in topics}
    subscriptions = {"A": tuple(topics), "B": tuple(topics if is_even else topics[1:])}
    before = at_once(assign(subscriptions, initialized, {}))
    return count_steps(lambda: at_once(assign({**subscriptions, "C": tuple(topics)}, initialized, before)))


def test_a_heartbeat_costs_as_much_as_its_topics() -> None:
    assert growth(steps_of_assigning_heartbeat) < GROWTH_MAX


@pytest.mark.parametrize("is_even", [True, False])
def test_an_assignment_costs_as_much_as_its_partitions(is_even: bool) -> None:
    assert growth(partial(steps_of_assignor, is_even=is_even)) < GROWTH_MAX


JOIN = ShareGroupHeartbeatRequest(group_id="g", member_id="A", member_epoch=0, subscribed_topic_names=("t",))


def with_small_slices(monkeypatch: pytest.MonkeyPatch) -> InMemoryBroker:
    """Return a broker with 12 partitions, of which the states of 5 begin at a turn."""
    monkeypatch.setattr(members, "SLICE_PARTITIONS", 5)
    at = InMemoryBroker(kafka_version="4.4", topics={"t": 12})
    for name in ("__consumer_offsets", "__share_group_state"):
        at.state.cluster.ensure_internal_topic(name, at.clock.now_ms())
    return at


def begin_states(monkeypatch: pytest.MonkeyPatch, *, ends_group: bool) -> tuple[list[int], InMemoryBroker]:
    """Join; return how many states there are after each turn."""
    at = with_small_slices(monkeypatch)
    result: Any = ask(at.state, JOIN, 1)
    counts = []
    while isinstance(result, DelayedOperation):
        counts.append(len(at.state.share_groups.store.states))
        if ends_group:
            at.state.coordinator.groups.remove("g")
        result = result.respond()
    return [*counts, len(at.state.share_groups.store.states)], at


def test_the_states_of_many_partitions_begin_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, at = begin_states(monkeypatch, ends_group=False)
    assert counts == [5, 10, 12, 12]
    group = at.state.share_groups.members.known("g")
    assert group is not None
    assert [sorted(topic.partitions) for topic in group.data.initialized.values()] == [list(range(12))]


def test_a_group_gets_the_partitions_of_all_slices_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change of its partitions writes all of them."""
    writes: list[int] = []
    write = members.ShareMembers.write

    def noted(self: members.ShareMembers, group: Any, data: Any, now_ms: int) -> Any:
        writes.append(sum(len(topic.partitions) for topic in data.initialized.values()))
        return write(self, group, data, now_ms)

    monkeypatch.setattr(members.ShareMembers, "write", noted)
    begin_states(monkeypatch, ends_group=False)
    assert writes == [0, 12]


def test_other_heartbeats_do_not_begin_states_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    at = with_small_slices(monkeypatch)
    first: Any = ask(at.state, JOIN, 1)
    assert isinstance(first, DelayedOperation)
    other: Any = ask(at.state, JOIN.replace(member_id="B"), 1)
    assert not isinstance(other, DelayedOperation)
    del first  # its client has gone
    again: Any = ask(at.state, JOIN.replace(member_id="C"), 1)
    assert isinstance(again, DelayedOperation)


def test_a_group_that_ends_between_slices_does_not_return(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, at = begin_states(monkeypatch, ends_group=True)
    assert counts == [5, 5]
    assert at.state.coordinator.groups.get("g") is None
