"""What streams groups may have at most."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, Topology
from kproto.records.streams_group_records import StreamsGroupTopologyValue, TopicInfo
from kproto.records.streams_group_records import Subtopology as StoredSubtopology
from kproto_server.coordinator.streams_groups import topology
from kproto_server.coordinator.streams_groups.data import MemberState
from kproto_server.coordinator.streams_groups.partition_counts import partition_counts
from kproto_server.coordinator.streams_groups.statuses import StatusCode
from kproto_server.testing import InMemoryBroker
from tests.membership.in_memory_transport import InMemoryTransport
from tests.robustness.steps import GROWTH_MAX, count_steps, growth
from tests.streams_groups.members import Application, Owned, endpoint, offsets


def subtopology(number: int) -> Subtopology:
    return Subtopology(
        subtopology_id=str(number),
        source_topics=("t",),
        source_topic_regex=(),
        state_changelog_topics=(),
        repartition_sink_topics=(),
        repartition_source_topics=(),
        copartition_groups=(),
    )


@pytest.mark.parametrize(("most", "is_refused"), [(8, False), (7, True)])
def test_a_topology_with_too_many_tasks_is_refused(
    most: int, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise one small request, whose subtopologies read the same topic, would hold the broker for seconds."""
    monkeypatch.setattr(topology, "TASKS_MAX", most)
    at = InMemoryBroker(kafka_version="4.4", topics={"t": 4})
    assert at.state.cluster.ensure_offsets_topic(0)
    request = StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id="m" * 22,
        member_epoch=0,
        endpoint_information_epoch=0,
        instance_id=None,
        rack_id=None,
        rebalance_timeout_ms=1000,
        topology=Topology(epoch=0, subtopologies=(subtopology(0), subtopology(1))),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="p",
        user_endpoint=None,
        client_tags=(),
        task_offsets=None,
        task_end_offsets=None,
        shutdown_application=False,
    )
    response: Any = at.connect().ask(request, 0)
    assert response.error_code == 0
    refused = [one for one in response.status or () if one.status_code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS]
    assert [one.status_detail for one in refused] == (
        ["kproto assigns at most 7 tasks of a group, and this topology has 8."] if is_refused else []
    )


@pytest.mark.parametrize(("release", "keeps_members"), [("4.3", False), ("4.4", True)])
def test_a_full_group_refuses_members(release: str, *, keeps_members: bool) -> None:
    """From 4.4 on, not those that it has (measured on 4.3.1 and 4.4.0)."""
    app = Application(InMemoryTransport.of(release, {"group.streams.max.size": "2"}), release, "n", 0)
    app.create()
    for name, is_served in (("A", True), ("B", True), ("C", False), ("A", keeps_members)):
        app.join(name)
        check_is_served(app, is_served=is_served)


def test_a_full_group_lets_a_static_member_return() -> None:
    app = Application(InMemoryTransport.of("4.4", {"group.streams.max.size": "1"}), "4.4", "n", 0)
    app.create()
    app.join("A", instance_id="i")
    app.leave("A", -2, instance_id="i")
    for instance, is_served in (("j", False), ("i", True)):
        app.join("B", instance_id=instance)
        check_is_served(app, is_served=is_served)


def check_is_served(app: Application, *, is_served: bool) -> None:
    [[response]] = app.steps[-1].responses.values()
    assert response["error_code"] == (0 if is_served else ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert is_served or "has reached its maximum capacity of " in response["error_message"]


@pytest.mark.parametrize(
    ("owned", "is_fenced"), [(None, True), (Owned({"0": (0,)}), True), (Owned(), False)], ids=["unsaid", "one", "none"]
)
def test_a_member_in_an_unknown_state_has_to_abandon_its_tasks(owned: Owned | None, *, is_fenced: bool) -> None:
    """The log of a newer release may have such a member (CurrentAssignmentBuilder, MemberState.UNKNOWN)."""
    transport = InMemoryTransport.of("4.4", {"group.streams.initial.rebalance.delay.ms": "0"})
    app = Application(transport, "4.4", "n", 1)
    app.create()
    app.join("A")
    group: Any = transport.state.coordinator.groups.get("n-g")
    member = replace(group.data.members["A"], state=MemberState.UNKNOWN)
    group.apply(group.data._replace(members={"A": member}), 0)
    app.beat("A", owned=owned)
    [[response]] = app.steps[-1].responses.values()
    assert response["error_code"] == (ErrorCode.FENCED_MEMBER_EPOCH if is_fenced else 0)
    if not is_fenced:
        assert group.data.members["A"].state is MemberState.STABLE


def test_a_refused_member_leaves_no_offsets() -> None:
    transport = InMemoryTransport.of("4.4")
    app = Application(transport, "4.4", "n", 1)
    app.warm_up()
    app.join("A")
    app.join("B", user_endpoint=endpoint(1), task_offsets=offsets(_0_0=5))
    assert app.steps[-1].responses["B"][0]["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR
    group: Any = transport.state.coordinator.groups.get("n-g")
    assert group.task_offsets == {}


def reading(name: str, sources: tuple[str, ...], repartition: tuple[str, ...], *sinks: str) -> StoredSubtopology:
    return StoredSubtopology(
        subtopology_id=name,
        source_topics=sources,
        source_topic_regex=(),
        state_changelog_topics=(),
        repartition_sink_topics=sinks,
        repartition_source_topics=tuple(
            TopicInfo(name=name, partitions=0, replication_factor=0, topic_configs=()) for name in repartition
        ),
        copartition_groups=(),
    )


def test_a_chain_of_subtopologies_takes_time_in_proportion_to_its_length() -> None:
    """One of 2000, listed backwards, in a request of 61 KiB, held the broker for seconds."""

    def steps_of(size: int) -> int:
        chain = [reading("0", ("t",), (), "r0")]
        chain += [reading(f"{number}", (), (f"r{number - 1}",), f"r{number}") for number in range(1, size)]
        chain.append(reading("last", (), (f"r{size - 1}",)))
        backwards = StreamsGroupTopologyValue(epoch=0, subtopologies=tuple(reversed(chain)))
        return count_steps(lambda: partition_counts(backwards, {"t": 3}))

    assert growth(steps_of) < GROWTH_MAX


def test_counts_are_found_in_rounds() -> None:
    """A subtopology uses the counts that it knows in its first round with any, as in Kafka."""
    subtopologies = (
        reading("0", (), ("b", "c"), "d"),
        reading("1", (), ("a", "b", "c"), "e"),
        reading("2", ("small",), (), "a"),
        reading("3", (), ("a",), "b"),
        reading("4", ("large",), (), "c"),
        reading("5", (), ("d", "e", "f"), "f"),
    )
    found = partition_counts(StreamsGroupTopologyValue(epoch=0, subtopologies=subtopologies), {"small": 2, "large": 5})
    assert isinstance(found, dict)
    assert list(found.items()) == [("a", 2), ("b", 2), ("c", 5), ("d", 5), ("e", 5), ("f", 5)]
