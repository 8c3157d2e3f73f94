"""The settings of consumer groups, and the configs of one group in place of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.testing.in_memory import virtual_clock
from tests.consumer_groups.members import Conversation
from tests.coordinator.broker_state import new_state
from tests.coordinator.change_logs import RecordingLog
from tests.membership.in_memory_transport import InMemoryTransport

CLASSES = "org.apache.kafka.coordinator.group.assignor."
GROUP = 32


def new_group(settings: Mapping[str, str]) -> Conversation:
    state = new_state("4.4", topics={"x": 6}, settings=settings, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "the-group", release="4.4")
    group.learn_topics("x")
    return group


def set_configs(group: Conversation, configs: Mapping[str, str]) -> None:
    changes = tuple(AlterableConfig(name=name, config_operation=0, value=value) for name, value in configs.items())
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group.group_id, configs=changes)
    [response] = group.send("admin", IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
    assert response.responses[0].error_code == 0


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("uniform, range", "uniform"),
        (f"{CLASSES}UniformAssignor", "uniform"),
        (f"{CLASSES}RangeAssignor,{CLASSES}UniformAssignor", "range"),
    ],
)
def test_the_first_assignor_is_the_default_by_its_name_or_class(setting: str, expected: str) -> None:
    group = new_group({"group.consumer.assignors": setting})
    group.join("A", ("x",))
    group.describe()
    [[response]] = group.steps[-1].responses.values()
    assert response["groups"][0]["assignor_name"] == expected


@pytest.mark.parametrize(("configs", "session_ms"), [({}, 45_000), ({"consumer.session.timeout.ms": "50000"}, 50_000)])
def test_the_session_of_a_group(configs: Mapping[str, str], session_ms: int) -> None:
    group = new_group({})
    set_configs(group, configs)
    group.join("A", ("x",))
    for wait_ms, expected in ((session_ms - 1, ["A"]), (1, [])):
        group.pass_time(wait_ms)
        group.describe()
        [[response]] = group.steps[-1].responses.values()
        assert [member["member_id"] for member in response["groups"][0]["members"]] == expected


@pytest.mark.parametrize(("configs", "interval_ms"), [({}, 1000), ({"consumer.assignment.interval.ms": "5000"}, 5000)])
def test_the_interval_of_the_assignments_of_a_group(configs: Mapping[str, str], interval_ms: int) -> None:
    group = new_group({"group.consumer.assignment.interval.ms": "1000"})
    set_configs(group, configs)
    group.join("A", ("x",))
    group.join("B", ("x",))
    before = group.members["A"].epoch
    for wait_ms, expected in ((interval_ms - 1, before), (1, before + 1)):
        group.pass_time(wait_ms)
        group.beat("B")
        assert group.members["B"].epoch == expected


def test_a_removal_that_cannot_be_written_is_repeated_ever_later() -> None:
    """With a removal every 500 ms, a day took seconds."""
    clock = virtual_clock()
    state = new_state("4.4", topics={"x": 6}, clock=clock)
    group = Conversation(InMemoryTransport(state), "the-group", release="4.4")
    group.learn_topics("x")
    group.join("A", ("x",))
    found = state.coordinator.groups.get("the-group")
    assert isinstance(found, ConsumerGroup)
    state.coordinator.log = log = RecordingLog(int(ErrorCode.KAFKA_STORAGE_ERROR))
    clock.advance(45_000 + 500 + 1000 + 2000)
    assert len(log.appended) == 4
    clock.advance(86_400_000)
    assert len(log.appended) < 2000
    assert list(found.data.members) == ["A"]
    state.coordinator.log = RecordingLog()
    clock.advance(45_000)
    assert not found.data.members
    clock.advance(45_000)
    assert not found.retry_delays_ms
    assert not found.deadlines
