"""Timelines on kproto's coordinator without sockets, on a virtual clock: minutes take milliseconds."""

from __future__ import annotations

from typing import Any

from kproto.declaration import ZERO_UUID
from kproto.message import Request
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.records.partitioning import OFFSETS_TOPIC, partition_for
from kproto_server.clock import Clock, ClockMode
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.expiration_task import ExpirationTask
from kproto_server.coordinator.groups import Group, GroupState, Member
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.pending_offsets import PendingOffset, PendingOffsets
from tests.coordinator.broker_state import NOW_MS, ask, commit_request, new_state
from tests.coordinator.consumer_group import add_consumer_group
from tests.coordinator.timeline import SESSION_S, Timeline

SECOND_MS = 1000
RETENTION_MS = 60 * SECOND_MS
PRODUCER, LATER_RECORD = 7, 1000
STEP_MS = 100
"""The time between two polls for an expired offset."""


class CoordinatorTimeline(Timeline):
    """A group with the settings of the measured brokers: a retention time of one minute, an expiration run each second,
    retention times of requests obeyed.

    Time 0 is half a second after a run, so that no event coincides with one. Members are added and removed by hand.
    """

    def __init__(self, kafka_version: str, **settings: str) -> None:
        super().__init__()
        given = {
            "offsets.retention.minutes": "1",
            "offsets.retention.check.interval.ms": "1000",
            "offsets.retention.override": "honour",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.state = new_state(kafka_version, settings=given, topics={"t": 3, "u": 1, "x": 1})
        self.clock = Clock(NOW_MS, 0, ClockMode.parse("manual"))
        self.expiration_task = ExpirationTask(self.state.coordinator, self.clock)
        self.expiration_task.start()
        self.clock.advance(SECOND_MS // 2)
        self._zero_ms = self.clock.now_ms()

    @property
    def now_s(self) -> float:
        return (self.clock.now_ms() - self._zero_ms) / 1000

    def _pass_until(self, time_s: float) -> None:
        self.clock.advance(self._zero_ms + round(time_s * 1000) - self.clock.now_ms())

    def _see(self) -> tuple[set[str], str]:
        return {f"{topic}-{index}" for topic, index in self.committed()}, self.group_state().value

    def join(self, *subscribed: str, protocol_type: str = "consumer") -> None:
        """Add a member as JoinGroup and SyncGroup would."""
        now_ms = self.clock.now_ms()
        group = self.state.coordinator.groups.get("g") or self.state.coordinator.groups.create("g", now_ms)
        group.protocol_type = protocol_type
        group.protocol_name = "range"
        group.transition_to(GroupState.PREPARING_REBALANCE, now_ms)
        group.add_member(Member("m"))
        group.generation += 1
        group.transition_to(GroupState.COMPLETING_REBALANCE, now_ms)
        group.subscribed_topics = frozenset(subscribed)
        group.transition_to(GroupState.STABLE, now_ms)

    def join_848(self, *subscribed: str) -> None:
        """Add a member as ConsumerGroupHeartbeat would."""
        add_consumer_group(self.state.coordinator, self.clock.now_ms(), "m", epoch=1, topics=subscribed)

    def leave(self) -> None:
        """Remove the member as LeaveGroup would (EX-12)."""
        group = self.group
        now_ms = self.clock.now_ms()
        if isinstance(group, ConsumerGroup):
            group.apply(group.data._replace(members={}, epoch=group.data.epoch + 1), now_ms)
            return
        group.members.clear()
        group.transition_to(GroupState.PREPARING_REBALANCE, now_ms)
        group.generation += 1
        group.protocol_name = None
        group.subscribed_topics = frozenset()
        group.transition_to(GroupState.EMPTY, now_ms)

    def fall_silent(self) -> None:
        self.clock.call_at(self.clock.now_ms() + SESSION_S * 1000, self.leave)

    def delete_topic(self, topic: str) -> None:
        response = self._ask(DeleteTopicsRequest(topic_names=(topic,), timeout_ms=0), 1)
        assert [topic.error_code for topic in response.responses] == [0]

    def ask_for_member_id(self) -> None:
        raise NotImplementedError

    def join_with_member_id(self) -> None:
        raise NotImplementedError

    def commit_in_transaction(self, partition: int = 0) -> None:
        """Add a pending offset as the load of a log would: kproto has no TxnOffsetCommit."""
        if self.state.coordinator.groups.get("g") is None:
            self.state.coordinator.groups.create("g", self.clock.now_ms())
        offsets_partition = partition_for("g", len(self.state.cluster.topics[OFFSETS_TOPIC].partitions))
        pending = self.state.coordinator.pending_offsets.setdefault(offsets_partition, PendingOffsets())
        stored = OffsetAndMetadata(7, -1, "", self.clock.now_ms(), None, ZERO_UUID)
        expire_ms = (
            self.clock.now_ms() + RETENTION_MS
            if self.state.coordinator.behavior.offsets_have_expire_timestamp
            else None
        )
        key = ("g", "t", partition)
        pending.add(PRODUCER, key, PendingOffset(LATER_RECORD, stored._replace(expire_timestamp_ms=expire_ms)))

    def end_transaction(self, *, committed: bool) -> None:
        for pending in self.state.coordinator.pending_offsets.values():
            for (group_id, topic, partition), stored in pending.end(PRODUCER, commits=committed):
                self.state.coordinator.offsets.apply_commit(group_id, [(topic, [(partition, stored)])])
                self._committed(topic, partition)

    @property
    def group(self) -> Group:
        group = self.state.coordinator.group("g")
        assert group is not None
        return group

    def commit(self, topic: str = "t", partition: int = 0, *, ret: int = -1, member: bool = False) -> None:
        fields: dict[str, Any] = {"retention_time_ms": ret}
        version = 3 if self.state.kafka_version.serves(8, 3) else 2
        if member:
            fields |= {"generation_id_or_member_epoch": self.group.generation, "member_id": "m"}
            version = 9 if self.group.kind == "consumer" else version
        self._commit(commit_request("g", {topic: {partition: 7}}, **fields), version)
        self._committed(topic, partition)

    def commit_v1(self, ago_ms: int) -> None:
        request = commit_request("g", {"t": {0: 7}})
        (topic,) = request.topics
        stamped = topic.partitions[0].replace(commit_timestamp=self.clock.now_ms() - ago_ms)
        self._commit(request.replace(topics=(topic.replace(partitions=(stamped,)),)), 1)
        self._committed("t", 0)

    def _commit(self, request: Request, version: int) -> None:
        response = self._ask(request, version)
        assert [p.error_code for topic in response.topics for p in topic.partitions] == [0]

    def _ask(self, request: Request, version: int) -> Any:
        return ask(self.state, request, version, now_ms=self.clock.now_ms())

    def has(self, topic: str = "t", partition: int = 0) -> bool:
        return partition in self.state.coordinator.offsets.of_group("g").get(topic, {})

    def committed(self) -> dict[tuple[str, int], int]:
        """Return the commit timestamps of the group's offsets."""
        offsets = self.state.coordinator.offsets.of_group("g")
        return {
            (topic, index): v.commit_timestamp_ms for topic, stored in offsets.items() for index, v in stored.items()
        }

    def gone(self, topic: str = "t", partition: int = 0, *, until_s: float = 200) -> float | None:
        """Let time pass until an offset expires, and return when; None if it does not in the given time."""
        while self.has(topic, partition):
            if self.now_s >= until_s:
                return None
            self.clock.advance(STEP_MS)
        return self.now_s

    def group_state(self) -> GroupState:
        group = self.state.coordinator.group("g")
        return GroupState.DEAD if group is None else group.state
