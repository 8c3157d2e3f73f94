"""A broker's coordinator on a clock of its own: things happen to groups at given times, and offsets go in between."""

from __future__ import annotations

from typing import Any

from kproto_server.clock import Clock, ClockMode
from kproto_server.coordinator.groups import Group, GroupState, Member
from kproto_server.coordinator.sweeps import Sweeps
from tests.coordinator.broker_state import NOW_MS, ask, commit_request, new_state

SECOND_MS = 1000
STEP_MS = 100
"""How closely it is looked when an offset goes."""


class Timeline:
    """Retention one minute, a sweep a second, retention times obeyed: as the brokers were set that were measured.

    Time 0 is half a second after a sweep, so that no event falls together with one.
    """

    def __init__(self, profile: str, **settings: str) -> None:
        given = {
            "offsets.retention.minutes": "1",
            "offsets.retention.check.interval.ms": "1000",
            "offsets.retention.override": "honour",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.state = new_state(profile, settings=given)
        self.clock = Clock(NOW_MS, 0, ClockMode.parse("manual"))
        self.sweeps = Sweeps(self.state, self.clock)
        self.sweeps.start()
        self.clock.advance(SECOND_MS // 2)
        self._zero_ms = self.clock.now_ms()

    @property
    def now_s(self) -> float:
        return (self.clock.now_ms() - self._zero_ms) / 1000

    def at(self, time_s: float) -> None:
        """Let time pass until then."""
        self.clock.advance(self._zero_ms + round(time_s * 1000) - self.clock.now_ms())

    def join(self, group_id: str = "g", *subscribed: str, protocol_type: str = "consumer") -> Group:
        """Have one member in a Stable group, as JoinGroup and SyncGroup will."""
        now_ms = self.clock.now_ms()
        group = self.state.groups.get(group_id) or self.state.groups.create(group_id, now_ms)
        group.protocol_type = protocol_type
        group.protocol_name = "range"
        group.transition_to(GroupState.PREPARING_REBALANCE, now_ms)
        group.add_member(Member("m"))
        group.generation += 1
        group.transition_to(GroupState.COMPLETING_REBALANCE, now_ms)
        group.subscribed_topics = frozenset(subscribed)
        group.transition_to(GroupState.STABLE, now_ms)
        return group

    def leave(self, group_id: str = "g") -> None:
        """Have the last member leave, as LeaveGroup will (EX-12)."""
        group = self.state.groups.get(group_id)
        assert group is not None
        now_ms = self.clock.now_ms()
        group.members.clear()
        group.transition_to(GroupState.PREPARING_REBALANCE, now_ms)
        group.generation += 1
        group.protocol_name = None
        group.subscribed_topics = frozenset()
        group.transition_to(GroupState.EMPTY, now_ms)

    def commit(self, topic: str = "t", partition: int = 0, *, ret: int = -1, member: bool = False) -> None:
        """Commit as the member of group "g", or as nobody, with a retention time in milliseconds; it has to succeed."""
        group = self.state.groups.get("g")
        fields: dict[str, Any] = {"retention_time_ms": ret}
        if member:
            assert group is not None
            fields |= {"generation_id_or_member_epoch": group.generation, "member_id": "m"}
        version = 3 if self.state.profile.serves(8, 3) else 2
        self._send(commit_request("g", {topic: {partition: 7}}, **fields), version)

    def commit_v1(self, ago_ms: int) -> None:
        """Commit with a timestamp of the client's."""
        request = commit_request("g", {"t": {0: 7}})
        (topic,) = request.topics
        stamped = topic.partitions[0].replace(commit_timestamp=self.clock.now_ms() - ago_ms)
        self._send(request.replace(topics=(topic.replace(partitions=(stamped,)),)), 1)

    def _send(self, request: Any, version: int) -> None:
        answer = ask(self.state, request, version, now_ms=self.clock.now_ms())
        assert [p.error_code for topic in answer.topics for p in topic.partitions] == [0]

    def has(self, topic: str = "t", partition: int = 0) -> bool:
        return partition in self.state.offsets.of_group("g").get(topic, {})

    def committed(self) -> dict[tuple[str, int], int]:
        """When each offset was committed."""
        offsets = self.state.offsets.of_group("g")
        return {
            (topic, index): v.commit_timestamp_ms for topic, stored in offsets.items() for index, v in stored.items()
        }

    def gone(self, topic: str = "t", partition: int = 0, *, until_s: float = 200) -> float | None:
        """Let time pass until an offset is gone, and return when; None if it outlives the time given."""
        while self.has(topic, partition):
            if self.now_s >= until_s:
                return None
            self.clock.advance(STEP_MS)
        return self.now_s

    def group_state(self, group_id: str = "g") -> GroupState:
        group = self.state.groups.get(group_id)
        return GroupState.DEAD if group is None else group.state


def near(measured_s: float | None, seen_s: float | None) -> bool:
    """Whether a time is the one that was measured on a real broker, to the second (EX-4)."""
    if measured_s is None or seen_s is None:
        return measured_s is seen_s
    return abs(measured_s - seen_s) <= 1
