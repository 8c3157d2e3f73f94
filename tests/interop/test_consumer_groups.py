"""Consumer groups whose directory goes from a real broker to kproto and back: each goes on where the other ended.

Method: a real broker has a group in the middle of a reconciliation, and is stopped or killed. kproto starts on its
log.dir, in place, must describe the same group, and leads the members on; then the same broker takes over again. The
epochs show whether a broker takes the subscribed topics for changed: their hash is in the log (KIP-1101).
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from tests.consumer_groups.members import Conversation
from tests.consumer_groups.record_transcripts import make_ready
from tests.interop.kproto_process import kproto_on, verify
from tests.interop.real_brokers import real_broker
from tests.membership.socket_transport import SocketTransport
from tests.waiting import wait_until

pytestmark = pytest.mark.oracle

SETTINGS = {"auto.create.topics.enable": "false", "offsets.topic.num.partitions": "1"}
TOPICS = ("t", "u", "w")
SECOND_MS = 1100
"""A little more than the assignment interval."""


class Group(Conversation):
    """A group that goes on with other brokers."""

    def move_to(self, address: str) -> None:
        self._transport = SocketTransport(address)
        wait_until(lambda: self.described()["error_code"] not in (14, 15, 16), "the load of the group")
        self.learn_topics(*TOPICS)

    def described(self) -> Any:
        self.describe()
        described = self.steps.pop().responses["admin"][0]["groups"][0]
        return {**described, "members": sorted(described["members"], key=lambda member: str(member["member_id"]))}

    @property
    def error(self) -> int:
        """The error of the last response."""
        [[response]] = self.steps[-1].responses.values()
        return int(response["error_code"])


@pytest.mark.parametrize(("release", "broker_end", "kproto_end"), [("4.4.0", "killed", "killed")])
def test_a_group_of_kproto_and_the_broker_in_one_directory(release: str, broker_end: str, kproto_end: str) -> None:
    with real_broker(release, SETTINGS) as theirs:
        address = theirs.start()
        make_ready(address)
        group = Group(SocketTransport(address), "the-group", release=release)
        group.learn_topics(*TOPICS)
        group.join("A", ("w", "t"), rack_id="r")
        group.join("S", ("w",), instance_id="i", server_assignor="range")
        group.beat("A")
        group.pass_time(SECOND_MS)
        group.join("B", ("w", "u"))
        group.beat("A")
        group.commit("A")
        before = group.described()
        assert before["group_state"] == "Reconciling"
        theirs.kill() if broker_end == "killed" else theirs.stop()

        with kproto_on(theirs.log_dir, release, SETTINGS, "fsync") as ours:
            group.move_to(ours.address)
            assert group.described() == before
            group.settle("A", "B", rounds=4)
            group.beat("S", instance_id="i")
            group.settle("A", "B", rounds=2)
            group.beat("S", instance_id="i")
            after = group.described()
            assert (after["group_state"], after["group_epoch"]) == ("Stable", before["group_epoch"])
            group.leave("S", -2, instance_id="i")
            group.pass_time(SECOND_MS)
            group.leave("B")
            group.beat("A")
            group.commit("A")
            middle = group.described()
            if kproto_end == "killed":
                ours.kill()
        verify(theirs.log_dir)

        group.move_to(theirs.start())
        assert group.described() == middle
        group.join("S2", ("w",), instance_id="i")
        assert group.error == ErrorCode.NONE
        group.settle("A", rounds=2)
        group.beat("S2", instance_id="i")
        group.settle("A", rounds=2)
        last = group.described()
        assert (last["group_state"], last["group_epoch"]) == ("Stable", middle["group_epoch"])
        theirs.kill()
        with kproto_on(theirs.log_dir, release, SETTINGS) as ours:
            group.move_to(ours.address)
            assert group.described() == last
