"""Targets of large groups, which are computed in steps between which other clients are served."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kproto.messages import k88_streams_group_heartbeat as k88
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto_server.clock import Clock, ClockMode
from kproto_server.coordinator.consumer_groups import targets
from kproto_server.coordinator.consumer_groups.data import ConsumerMember, GroupData
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.consumer_groups.timers import DEADLINES
from kproto_server.coordinator.epoch_groups import assigning
from kproto_server.coordinator.epoch_groups.requests import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from kproto_server.coordinator.streams_groups import targets as streams_targets
from kproto_server.share_groups import members
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import new_state

TOPICS = ("t", "u", "w")
PARTITION_COUNT = 6


class Group:
    """A consumer or share group on a broker whose steps a test does itself."""

    def __init__(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kind = kind
        self.steps: list[Iterator[None]] = []
        monkeypatch.setattr(assigning, "STEP_SIZE", 1)
        for module in (targets, members, streams_targets):
            monkeypatch.setattr(module, "SIZE_MAX", 0)
        monkeypatch.setattr(assigning, "Steps", lambda clock: SimpleNamespace(begin=self.steps.append))
        self.broker = InMemoryBroker(kafka_version="4.4", topics=dict.fromkeys(TOPICS, PARTITION_COUNT // 3))
        for name in ("__consumer_offsets", "__share_group_state"):
            self.broker.state.cluster.ensure_internal_topic(name, self.broker.clock.now_ms())
        self.pair = self.broker.connect()
        self.epochs: dict[str, int] = {}

    def beat(self, member: str, epoch: int | None = None, instance_id: str | None = None) -> None:
        """Send a heartbeat, and let the time to the next assignment pass."""
        sent = self.epochs.get(member, JOIN_EPOCH) if epoch is None else epoch
        joins = sent == JOIN_EPOCH
        names = (TOPICS if member != "C" else TOPICS[:2]) if joins else None
        request: Any
        if self.kind == "share":
            request = ShareGroupHeartbeatRequest(
                group_id="g", member_id=member, member_epoch=sent, subscribed_topic_names=names
            )
        elif self.kind == "streams":
            request = streams_heartbeat(member, sent)
        else:
            request = ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=member,
                member_epoch=sent,
                instance_id=instance_id,
                rebalance_timeout_ms=30_000 if joins else -1,
                subscribed_topic_names=names,
                topic_partitions=() if joins else None,
            )
        response: Any = self.pair.ask(request, 0 if self.kind == "streams" else 1)
        assert response.error_code == 0, response
        self.epochs[member] = response.member_epoch
        self.broker.advance(milliseconds=2_000)

    @property
    def data(self) -> Any:
        group: Any = self.broker.state.coordinator.groups.get("g")
        return group.data

    def finish(self) -> int:
        """Do all steps; return how many there were."""
        count = 0
        while self.steps:
            for _ in self.steps.pop(0):
                count += 1
        self.broker.advance(milliseconds=2_000)
        return count

    def sizes(self) -> dict[str, int]:
        """Return the number of partitions of each target."""
        return {name: len(self.partitions(name)) for name in self.data.targets}

    def partitions(self, member: str) -> list[tuple[Any, int]]:
        """Return the target of a member."""
        target = self.data.targets[member]
        found = target.active if self.kind == "streams" else target
        return [(topic, index) for topic, indexes in found.items() for index in indexes]


def streams_heartbeat(member: str, epoch: int) -> k88.StreamsGroupHeartbeatRequest:
    """Return a heartbeat of a topology with a task for each partition."""
    joins = epoch == JOIN_EPOCH
    subtopologies = tuple(
        k88.Subtopology(
            subtopology_id=name,
            source_topics=(name,),
            source_topic_regex=(),
            state_changelog_topics=(),
            repartition_sink_topics=(),
            repartition_source_topics=(),
            copartition_groups=(),
        )
        for name in TOPICS
    )
    return k88.StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id=member,
        member_epoch=epoch,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=30_000 if joins else -1,
        topology=k88.Topology(epoch=0, subtopologies=subtopologies) if joins else None,
        process_id=member,
        active_tasks=() if joins else None,
        standby_tasks=() if joins else None,
        warmup_tasks=() if joins else None,
    )


@pytest.fixture(params=["consumer", "share", "streams"])
def group(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Group:
    joined = Group(request.param, monkeypatch)
    for _ in range(3):
        joined.beat("A")
        joined.finish()
    assert joined.sizes() == {"A": PARTITION_COUNT}
    return joined


def test_members_of_large_groups_get_their_shares(group: Group) -> None:
    group.beat("B")
    group.beat("C")
    assert group.finish() > 5
    assert group.data.assignment_epoch < group.data.epoch  # C has joined meanwhile
    group.beat("B")
    group.finish()
    assert group.data.assignment_epoch == group.data.epoch
    sizes = group.sizes()
    assert all(sizes.values())
    assert len(sizes) == 3
    assert len({partition for member in sizes for partition in group.partitions(member)}) == PARTITION_COUNT


def test_one_computation_runs_at_a_time(group: Group) -> None:
    group.beat("B")
    group.beat("A")
    group.beat("B")
    assert len(group.steps) == 1


def test_members_that_leave_meanwhile_get_nothing(group: Group) -> None:
    group.beat("B")
    next(group.steps[0])
    group.beat("B", LEAVE_EPOCH)
    group.finish()
    assert set(group.data.targets) == {"A"}
    group.beat("A")
    group.finish()
    assert group.sizes() == {"A": PARTITION_COUNT}


def test_a_group_that_ends_meanwhile_stays_away(group: Group) -> None:
    group.beat("B")
    next(group.steps[0])
    group.broker.state.coordinator.groups.remove("g")
    group.finish()
    assert group.broker.state.coordinator.groups.get("g") is None


def test_a_static_member_that_is_replaced_meanwhile_gets_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group("consumer", monkeypatch)
    group.beat("A", instance_id="i")
    group.finish()
    group.beat("B")
    next(group.steps[0])
    group.beat("A", LEAVE_STATIC_EPOCH, "i")
    group.beat("D", instance_id="i")
    group.finish()
    group.beat("B")
    group.finish()
    assert group.sizes() == {"D": 3, "B": 3}


@pytest.mark.parametrize(("rate", "turns"), [(1.0, 5), (0.0, 1)])
def test_members_of_a_large_group_are_removed_in_steps(
    rate: float, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sessions of a loaded group end together: the removal of 2000 members took 1.9 s. A clock that stands still
    waits for all of them."""
    monkeypatch.setattr(assigning, "STEP_SIZE", 6)
    clock = Clock(1_700_000_000_000.0, 0.0, ClockMode(rate=rate))
    state = new_state("4.4", clock=clock)
    assert state.cluster.ensure_offsets_topic(clock.now_ms())
    group = ConsumerGroup("g", clock.now_ms())
    state.coordinator.groups.add(group)
    group.restore(GroupData(members={f"m{n}": ConsumerMember(f"m{n}") for n in range(8)}), clock.now_ms())
    DEADLINES.begin(state.coordinator, group, 1_000, clock.now_ms())
    if not rate:
        clock.advance(1_000)
    found = 0 if rate else 1
    while group.members and found < 100:
        found += 1
        clock.tick(1_000.0 + found)
        clock.run_due()
    assert (found, group.data.epoch) == (turns, 8)
