"""What a share group keeps when its broker starts again: members, assignments, and acknowledged records."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.message import Request
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.share_groups.group import ShareGroup
from kproto_server.share_groups.share_partition import ACCEPT, REJECT, RELEASE
from kproto_server.testing import virtual_clock
from kproto_server.testing.in_memory import ConnectedPair
from tests.coordinator.broker_state import ask, new_state
from tests.coordinator.change_logs import RecordingLog
from tests.persistence.disk_broker import DiskBroker
from tests.share_groups.sharers import Sharers

SETTINGS = {"share.coordinator.state.topic.num.partitions": "2"}


class DiskTransport:
    """Connections to a broker with a data directory; a restart ends them."""

    def __init__(self, at: DiskBroker) -> None:
        self.at = at
        self._pairs: dict[str, ConnectedPair] = {}

    def send(self, name: str, request: Request, version: int) -> None:
        if name not in self._pairs:
            self._pairs[name] = self.at.broker.connect()
        self._pairs[name].send(request, version)
        self._settle()

    def responses(self) -> list[tuple[str, Any]]:
        self._settle()
        found: list[tuple[str, Any]] = []
        for name, pair in self._pairs.items():
            while pair.responses:
                found.append((name, pair.responses.pop()))
        return found

    @property
    def waiting(self) -> list[str]:
        return [name for name, pair in self._pairs.items() if pair.client.in_flight]

    def pass_time(self, duration_ms: int) -> None:
        self.at.advance(duration_ms)
        self._settle()

    def disconnect(self, name: str) -> None:
        self._pairs.pop(name).close()
        self._settle()

    def kill(self) -> None:
        self.at.kill()
        self._pairs.clear()

    def _settle(self) -> None:
        self.at.persistence.flush()
        self.at.advance(1)
        self.at.broker.deliver()


def started() -> tuple[DiskTransport, Sharers]:
    transport = DiskTransport(DiskBroker("os", SETTINGS, kafka_version="4.4"))
    share = Sharers(transport, KafkaVersion.named("4.4"), "n")
    share.create()
    share.join("A")
    share.pass_time(1_000)  # until targets may be computed again
    share.heartbeat("A")
    share.fetch("A", 0, wait_ms=100)  # fixes the start offset
    share.produce(10)
    return transport, share


def last(share: Sharers, member: str = "A") -> Any:
    return share.steps[-1].responses[member][0]


def acquired(share: Sharers) -> list[tuple[int, int, int]]:
    share.fetch("A", 0, epoch=0)
    found = last(share)["responses"][0]["partitions"][0].get("acquired_records", [])
    return [(one["first_offset"], one["last_offset"], one["delivery_count"]) for one in found]


def stored(transport: DiskTransport) -> dict[str, Any]:
    """What the log has of the group."""
    data = group_of(transport).data
    return data._asdict() | {"members": {name: asdict(member) for name, member in data.members.items()}}


def group_of(transport: DiskTransport) -> ShareGroup:
    found = transport.at.broker.state.coordinator.groups.get("n-g")
    assert isinstance(found, ShareGroup)
    return found


def test_members_epochs_and_assignments_survive() -> None:
    transport, share = started()
    before = stored(transport)
    assert before["members"]["A"]["assigned"]
    transport.kill()
    assert stored(transport) == before
    share.heartbeat("A")
    assert not last(share)["error_code"]
    share.heartbeat("A", epoch=-1)
    after = stored(transport)
    assert not after["members"]
    transport.kill()
    assert stored(transport) == after


def test_members_that_do_not_return_leave_when_their_sessions_expire() -> None:
    transport, _ = started()
    transport.kill()
    transport.pass_time(44_000)
    assert group_of(transport).data.members
    transport.pass_time(2_000)
    assert not group_of(transport).data.members


@pytest.mark.parametrize("count", [1, 2])
def test_acknowledged_records_and_delivery_counts_survive(count: int) -> None:
    transport, share = started()
    assert acquired(share) == [(0, 9, 1)]
    share.acknowledge("A", {0: [(0, 1, [ACCEPT]), (4, 4, [REJECT]), (6, 6, [RELEASE])]})
    for _ in range(count):
        transport.kill()
    # The state has no record of what was only delivered.
    assert acquired(share) == [(2, 3, 1), (5, 5, 1), (6, 6, 2), (7, 9, 1)]


MAGIC = 16
"""A position in a batch."""


@pytest.mark.parametrize(
    ("wait_ms", "is_lost", "error"),
    [
        (0, False, ErrorCode.UNKNOWN_SERVER_ERROR),
        (500, False, ErrorCode.UNKNOWN_SERVER_ERROR),
        (0, True, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_a_log_that_cannot_be_read_is_an_error_of_its_partition_only(
    wait_ms: int, is_lost: bool, error: ErrorCode
) -> None:
    """The connection was closed. A lost file stands for a disk that fails, and for a process without descriptors."""
    transport = DiskTransport(DiskBroker("os", SETTINGS, kafka_version="4.4"))
    share = Sharers(transport, KafkaVersion.named("4.4"), "n")
    share.create(partitions=2)
    share.configure(share_auto_offset_reset="earliest")
    share.join("A")
    for partition in (0, 1):
        share.produce(1, partition=partition)
    transport.at.persistence.close()
    transport.at.disk.open(f"n-t-0/{0:020}.log").write_at(MAGIC, b"\x22")
    transport.kill()
    if is_lost:
        transport.at.disk.remove(f"n-t-0/{0:020}.log")
    share.fetch("A", 0, 1, epoch=0, wait_ms=wait_ms)
    damaged, sound = last(share)["responses"][0]["partitions"]
    assert damaged["error_code"] == error
    assert sound["acquired_records"] == [{"first_offset": 0, "last_offset": 0, "delivery_count": 1}]


@pytest.mark.parametrize("kafka_version", ["2.8", "3.9", "4.0", "4.1"])
def test_a_release_without_share_groups_starts_with_their_records(kafka_version: str) -> None:
    transport, _ = started()
    transport.at.kafka_version = kafka_version
    transport.kill()
    assert "t" in {name.rpartition("-")[2] for name in transport.at.broker.state.cluster.topics}


def test_start_offsets_that_an_administrator_sets_survive() -> None:
    """Without members they are all that the log has of the group."""
    transport, share = started()
    share.alter_offsets({"t": {0: 7}}, group="new")
    transport.kill()
    share.describe_offsets(group="new")
    described = last(share, "admin")["groups"][0]["topics"][0]["partitions"][0]
    assert (described["start_offset"], described["lag"]) == (7, 3)


def test_a_group_without_sessions_begins_again_where_new_records_come() -> None:
    """Records that members have not acquired leave no state; without one, the group reads later records only."""
    transport, share = started()
    transport.disconnect("A")
    assert acquired(share) == []
    share.produce(3)
    assert acquired(share) == [(10, 12, 1)]
    transport.disconnect("A")
    assert acquired(share) == [(10, 12, 2)]


def test_a_deleted_group_leaves_nothing() -> None:
    transport, share = started()
    acquired(share)
    share.acknowledge("A", {0: [(0, 1, [ACCEPT])]})
    share.heartbeat("A", epoch=-1)
    share.delete_groups("g")
    assert transport.at.broker.state.share_groups.store.states == {}
    transport.kill()
    assert transport.at.broker.state.coordinator.groups.get("n-g") is None
    assert transport.at.broker.state.share_groups.store.states == {}


@pytest.mark.parametrize("waits", [False, True])
def test_writes_that_fail_are_undone(waits: bool) -> None:
    """Two in flight that both fail go back to the data that the log has."""
    state = new_state("4.4", clock=virtual_clock())

    def heartbeat(member_id: str, group_id: str = "g") -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id=group_id, member_id=member_id, member_epoch=0, subscribed_topic_names=("t",)
        )
        return ask(state, request, 1, now_ms=state.clock.now_ms())

    assert heartbeat("A").member_epoch == 2
    group = state.coordinator.groups.get("g")
    assert isinstance(group, ShareGroup)
    before = group.data
    state.coordinator.log = log = RecordingLog(int(ErrorCode.KAFKA_STORAGE_ERROR), waits=waits)
    responses = [heartbeat("B"), heartbeat("C"), heartbeat("new", group_id="h")]
    log.settle()
    if not waits:
        assert [response.error_code for response in responses] == [ErrorCode.NOT_COORDINATOR] * 3
    assert group.data is before
    assert state.coordinator.groups.get("h") is None
    state.coordinator.log = RecordingLog()
    assert not heartbeat("B").error_code
    assert list(group.data.members) == ["A", "B"]
