"""Share groups whose directory goes from a real broker to kproto and back: each goes on where the other ended.

Method: a member of a real broker has acquired records, of which it has accepted, released and rejected some; some are
acquired. The broker is stopped or killed, and kproto starts on its log.dir, in place; then the same broker takes over
again, and kproto once more. The states of share partitions have few updates for each snapshot, so that their log has
both. What was only acquired is nowhere: it is delivered again, for the first time.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.share_groups.share_partition import ACCEPT, REJECT, RELEASE
from tests.interop.kproto_process import kproto_on, verify
from tests.interop.real_brokers import RealBroker, real_broker
from tests.membership.socket_transport import SocketTransport
from tests.share_groups.setup import LOADING
from tests.share_groups.sharers import Sharers
from tests.share_groups.states import SENDER, At, States
from tests.share_groups.transcripts import REAL_SETTINGS
from tests.waiting import wait_until

pytestmark = pytest.mark.oracle

SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
}
BOTH = (At(0), At(1))


class Group(Sharers):
    """A share group that goes on with other brokers."""

    def __init__(self, release: str) -> None:
        super().__init__(None, KafkaVersion.named(release), "moving")  # type: ignore[arg-type]  # move_to has one
        self.states = States(self)

    def move_to(self, address: str) -> None:
        self._transport = SocketTransport(address)
        self.session_epochs.clear()

    def wait_until_loaded(self) -> None:
        wait_until(lambda: self.described()["error_code"] not in LOADING, "the load of the group")
        wait_until(lambda: not any(one["error_code"] in LOADING for one in self.stored()), "the load of the states")

    def described(self) -> Any:
        self.describe()
        return self.steps.pop().responses["admin"][0]["groups"][0]

    def stored(self) -> list[Any]:
        """Return the states of both partitions, and their summaries."""
        found = []
        for read in (self.states.read, self.states.summarize):
            read(-1, *BOTH)
            results = self.steps.pop().responses[SENDER][0]["results"]
            found += [part for topic in results for part in topic["partitions"]]
        return found

    def acquired(self, *partitions: int) -> dict[tuple[int, int], int]:
        """Fetch in a new session; return the delivery counts of what is acquired, by partition and offset.

        A broker may load one partition later than the other, so that the second fetch has its records.
        """
        self.fetch("A", *partitions, epoch=0, wait_ms=2_000)
        self.fetch("A", wait_ms=500)
        return {
            (part["partition_index"], offset): one["delivery_count"]
            for step in self.steps[-2:]
            for response in step.responses["A"]
            for topic in response.get("responses", ())
            for part in topic["partitions"]
            for one in part.get("acquired_records", ())
            for offset in range(one["first_offset"], one["last_offset"] + 1)
        }


def begun(theirs: RealBroker, release: str) -> Group:
    """Return a group with records in all states, on a real broker."""
    group = Group(release)
    group.move_to(theirs.start())
    group.create(partitions=2)
    group.heartbeat("A", epoch=0, topics=["t"])
    wait_until(lambda: _beat(group), "the assignment")
    group.fetch("A", 0, 1, wait_ms=500)
    group.produce(5, 5, 10)
    group.produce(4, partition=1)
    assert group.acquired(0, 1).keys() == {*((0, n) for n in range(20)), *((1, n) for n in range(4))}
    group.acknowledge("A", {0: [(0, 1, [ACCEPT]), (2, 3, [RELEASE]), (4, 4, [REJECT])], 1: [(1, 1, [ACCEPT])]})
    group.acknowledge("A", {0: [(6, 6, [ACCEPT])]})
    group.acknowledge("A", {0: [(8, 8, [ACCEPT])]})
    return group


def _beat(group: Group) -> bool:
    group.heartbeat("A")
    return bool(group.described()["members"][0]["assignment"])


def test_a_share_group_of_kproto_and_the_broker_in_one_directory() -> None:
    release = "4.4.0"
    with real_broker(release, SETTINGS | REAL_SETTINGS) as theirs:
        group = begun(theirs, release)
        before, stored = group.described(), group.stored()
        theirs.kill()

        with kproto_on(theirs.log_dir, release, SETTINGS, "fsync") as ours:
            group.move_to(ours.address)
            group.wait_until_loaded()
            assert group.described() == before
            assert group.stored() == stored
            new = {(0, offset): 1 for offset in (5, 7, *range(9, 20))}
            assert group.acquired(0, 1) == new | {(0, 2): 2, (0, 3): 2, (1, 0): 1, (1, 2): 1, (1, 3): 1}
            group.acknowledge("A", {0: [(2, 2, [ACCEPT]), (3, 3, [RELEASE]), (7, 7, [REJECT])], 1: [(0, 0, [ACCEPT])]})
            middle = group.stored()
            ours.kill()
        verify(theirs.log_dir)

        group.move_to(theirs.start())
        group.wait_until_loaded()
        assert group.described() == before
        assert group.stored() == middle
        new = {(0, offset): 1 for offset in (5, *range(9, 20))}
        assert group.acquired(0, 1) == new | {(0, 3): 3, (1, 2): 1, (1, 3): 1}
        group.acknowledge("A", {0: [(3, 3, [ACCEPT])], 1: [(2, 2, [ACCEPT])]})
        last = group.stored()
        theirs.stop()
        with kproto_on(theirs.log_dir, release, SETTINGS) as ours:
            group.move_to(ours.address)
            group.wait_until_loaded()
            assert group.stored() == last
