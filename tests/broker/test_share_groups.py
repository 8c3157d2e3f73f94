"""`Broker.groups` reports members, start offsets and lag of share groups, as kafka-share-groups.sh does."""

from __future__ import annotations

from kproto_server import Broker
from tests.share_groups.confluent_members import Members

SETTINGS = {"group.share.min.heartbeat.interval.ms": "1000", "group.share.heartbeat.interval.ms": "1000"}


def test_a_share_group_has_start_offsets_and_a_lag() -> None:
    with Broker.running(settings=SETTINGS) as broker:
        members = Members(broker.bootstrap_servers)
        members.begin()
        [member] = broker.groups.members("g")
        assert member.partitions == (("t", 0),)
        members.read_all()
        assert broker.groups.state("g") == "Stable"
        [(name, start_offset)] = broker.groups.start_offsets("g").items()
        assert name == ("t", 0)
        assert 0 < start_offset <= members.sent_count
        assert broker.groups.lag("g") == {("t", 0): 0}
        members.send("last")
        assert broker.groups.lag("g") == {("t", 0): 1}
        members.first.close()
        assert broker.groups.state("g") == "Empty"
        assert broker.groups.lag("g") == {("t", 0): 1}


def test_other_groups_have_no_start_offsets() -> None:
    with Broker.running() as broker:
        assert broker.groups.start_offsets("missing") == {}
