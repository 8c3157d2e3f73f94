"""What a streams group keeps when its broker starts again: topology, members, epochs and tasks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from kproto.messages.k88_streams_group_heartbeat import KeyValue
from kproto_server.coordinator.streams_groups.group import StreamsGroup
from tests.persistence.disk_broker import DiskBroker
from tests.share_groups.test_restarts import DiskTransport
from tests.streams_groups.members import STATEFUL, Application, Owned, endpoint

SETTINGS = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}


def started(**settings: str) -> tuple[DiskTransport, Application]:
    transport = DiskTransport(DiskBroker("os", SETTINGS | settings, kafka_version="4.4"))
    app = Application(transport, "4.4", "n", 1)
    app.create(partitions=4)
    app.join("A", STATEFUL, user_endpoint=endpoint(1), rack_id="r")
    app.join("B", STATEFUL, instance_id="i", client_tags=(KeyValue(key="zone", value="z"),))
    app.settle("A", rounds=2)
    app.beat("B", instance_id="i")
    return transport, app


def group_of(transport: DiskTransport) -> StreamsGroup:
    found = transport.at.broker.state.coordinator.groups.get("n-g")
    assert isinstance(found, StreamsGroup)
    return found


def stored(transport: DiskTransport) -> dict[str, Any]:
    """What the log has of the group."""
    data = group_of(transport).data
    return data._asdict() | {"members": {name: asdict(member) for name, member in data.members.items()}}


def last(app: Application, name: str) -> Any:
    return app.steps[-1].responses[name][0]


def test_topology_members_epochs_and_tasks_survive() -> None:
    transport, app = started()
    before = stored(transport)
    assert [sum(map(len, one["assigned"].active.values())) for one in before["members"].values()] == [2, 2]
    transport.kill()
    assert stored(transport) == before
    app.beat("A")
    app.beat("B", instance_id="i")
    assert last(app, "B")["error_code"] == 0
    assert stored(transport) == before, "the topics have not changed"


def test_a_reconciliation_goes_on() -> None:
    transport, app = started()
    app.join("C", STATEFUL)
    app.beat("A")
    before = stored(transport)
    assert before["members"]["A"]["revoking"].active
    transport.kill()
    assert stored(transport) == before
    app.settle("A", "C")
    assert group_of(transport).data.members["A"].epoch == group_of(transport).data.epoch


def test_standby_tasks_and_their_revocation_survive() -> None:
    transport, app = started(**{"group.streams.num.standby.replicas": "1"})
    app.create("log", partitions=4)
    app.settle("A")
    app.beat("B", instance_id="i")
    app.settle("A")
    before = stored(transport)
    assert any(one["assigned"].standby for one in before["members"].values())
    transport.kill()
    assert stored(transport) == before
    app.join("C", STATEFUL)
    app.beat("A")
    before = stored(transport)
    assert any(one["revoking"].standby for one in before["members"].values())
    transport.kill()
    assert stored(transport) == before


def test_a_heartbeat_extends_the_session_of_a_restart() -> None:
    transport, app = started()
    transport.kill()
    transport.pass_time(40_000)
    app.beat("A")
    transport.pass_time(40_000)
    assert list(group_of(transport).data.members) == ["A"]
    transport.pass_time(6_000)
    assert not group_of(transport).data.members


def test_members_that_do_not_return_leave_when_their_sessions_expire() -> None:
    transport, _ = started()
    transport.kill()
    transport.pass_time(44_000)
    assert group_of(transport).data.members
    transport.pass_time(2_000)
    assert not group_of(transport).data.members


def test_a_static_member_that_is_away_survives() -> None:
    transport, app = started()
    app.leave("B", -2, instance_id="i")
    before = stored(transport)
    transport.kill()
    assert stored(transport) == before
    app.join("C", STATEFUL, instance_id="i")
    assert last(app, "C")["error_code"] == 0
    assert app.members["C"].owned.active, "those of the member that it replaces"


def test_a_deleted_group_leaves_nothing() -> None:
    transport, app = started()
    app.leave("A")
    app.leave("B", -1, instance_id="i")
    app.delete()
    transport.kill()
    assert transport.at.broker.state.coordinator.groups.get("n-g") is None


@pytest.mark.parametrize("kafka_version", ["2.8", "3.9", "4.0"])
def test_a_release_without_streams_groups_starts_with_their_records(kafka_version: str) -> None:
    transport, _ = started()
    transport.at.kafka_version = kafka_version
    transport.kill()
    assert transport.at.broker.state.coordinator.groups.get("n-g") is None
    assert "n-t" in transport.at.broker.state.cluster.topics


def test_no_task_is_given_twice_across_a_restart() -> None:
    transport, app = started()
    app.beat("A", owned=Owned({"0": (0, 1)}))
    transport.kill()
    app.join("C", STATEFUL)
    app.settle("A", "C")
    held = [set(member.assigned.active.get("0", ())) for member in group_of(transport).data.members.values()]
    assert sum(map(len, held)) == len(set().union(*held))
