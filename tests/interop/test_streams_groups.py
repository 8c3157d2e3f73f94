"""Streams groups whose directory goes from a real broker to kproto and back: each goes on where the other ended.

Method: that of `test_consumer_groups`. The epochs show whether a broker takes the topics or the topology for changed.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from tests.interop.kproto_process import kproto_on, verify
from tests.interop.real_brokers import real_broker
from tests.membership.socket_transport import SocketTransport
from tests.streams_groups.members import STATEFUL, Application, endpoint

pytestmark = pytest.mark.oracle

SETTINGS = {"offsets.topic.num.partitions": "1", "group.streams.initial.rebalance.delay.ms": "0"}
REBALANCE_MS = 60_000
SECOND_MS = 1100
"""A little more than the assignment interval."""


class Moving(Application):
    """A group that goes on with other brokers."""

    def move_to(self, address: str) -> None:
        self._transport = SocketTransport(address)
        self.wait_for("t", "log")

    def described(self) -> Any:
        self.describe()
        return self.steps.pop().responses["admin"][0]["groups"][0]

    @property
    def error(self) -> int:
        """The error of the last response."""
        [[response]] = self.steps[-1].responses.values()
        return int(response["error_code"])


def without_partition_counts(described: Any) -> Any:
    """Return a group without its topology: a broker that has just loaded it has not counted partitions yet."""
    return {name: value for name, value in described.items() if name != "topology"}


@pytest.mark.parametrize(("release", "end"), [("4.4.0", "killed")])
def test_a_group_of_kproto_and_the_broker_in_one_directory(release: str, end: str) -> None:
    with real_broker(release, SETTINGS) as theirs:
        address = theirs.start()
        app = Moving(SocketTransport(address), release, "n", 0)
        app.create(partitions=4)
        app.join("A", STATEFUL, user_endpoint=endpoint(1), rack_id="r", rebalance_timeout_ms=REBALANCE_MS)
        app.wait_for("log")
        app.settle("A")
        app.pass_time(SECOND_MS)
        app.join("B", STATEFUL, rebalance_timeout_ms=REBALANCE_MS)
        app.beat("A")
        app.commit("A")
        before = app.described()
        assert before["group_state"] == "Reconciling"
        theirs.kill() if end == "killed" else theirs.stop()

        with kproto_on(theirs.log_dir, release, SETTINGS, "fsync") as ours:
            app.move_to(ours.address)
            assert without_partition_counts(app.described()) == without_partition_counts(before)
            app.settle("A", "B", rounds=4)
            after = app.described()
            assert (after["group_state"], after["group_epoch"]) == ("Stable", before["group_epoch"])
            app.pass_time(SECOND_MS)
            app.leave("B")
            app.beat("A")
            app.commit("A")
            middle = app.described()
            if end == "killed":
                ours.kill()
        verify(theirs.log_dir)

        app.move_to(theirs.start())
        assert without_partition_counts(app.described()) == without_partition_counts(middle)
        app.settle("A")
        assert app.error == ErrorCode.NONE
        last = app.described()
        assert (last["group_state"], last["group_epoch"]) == ("Stable", middle["group_epoch"])
        theirs.kill()
        with kproto_on(theirs.log_dir, release, SETTINGS) as ours:
            app.move_to(ours.address)
            assert without_partition_counts(app.described()) == without_partition_counts(last)
