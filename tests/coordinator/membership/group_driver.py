"""A driver for one group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup as calls, without requests and sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kproto.records.consumer_protocol import ConsumerProtocolSubscription, encode_member_data
from kproto_server.coordinator.change_log import ChangeLog
from kproto_server.coordinator.groups import Group, GroupState, Protocols
from kproto_server.coordinator.membership.heartbeat import heartbeat
from kproto_server.coordinator.membership.join import join
from kproto_server.coordinator.membership.leave import leave
from kproto_server.coordinator.membership.requests import JoinRequest, SyncRequest
from kproto_server.coordinator.membership.responses import JoinResult, PendingResponse, SyncResult
from kproto_server.coordinator.membership.sync import sync
from tests.coordinator.broker_state import new_state

SUBSCRIPTION = encode_member_data(ConsumerProtocolSubscription(topics=("t",)), 0)
RANGE: Protocols = (("range", SUBSCRIPTION),)


class GroupDriver:
    """The members of the group "g", by direct calls of the coordinator."""

    def __init__(self, kafka_version: str = "4.4", log: ChangeLog | None = None, **settings: str) -> None:
        given = {
            "group.min.session.timeout.ms": "1",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.state = new_state(kafka_version, settings=given)
        if log is not None:
            self.state.coordinator.log = log
        self.clock = self.state.clock

    @property
    def group(self) -> Group:
        group = self.state.coordinator.groups.get("g")
        assert group is not None
        return group

    @property
    def group_state(self) -> GroupState:
        group = self.state.coordinator.groups.get("g")
        return GroupState.DEAD if group is None else group.state

    def pass_time(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)

    def states_around(self, duration_ms: int) -> tuple[GroupState, GroupState]:
        """Let time pass; return the state a millisecond before the end, and at the end."""
        self.pass_time(duration_ms - 1)
        before = self.group_state
        self.pass_time(1)
        return before, self.group_state

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        requires_known_member_id: bool = False,
        supports_skipping_assignment: bool = True,
        settle: bool = True,
    ) -> PendingResponse[JoinResult]:
        """Send JoinGroup; ``settle``: run the timers that are due."""
        response = join(
            self.state.coordinator,
            JoinRequest(
                group_id="g",
                member_id=member_id,
                group_instance_id=instance,
                client_id="client",
                client_host="/127.0.0.1",
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                protocol_type=protocol_type,
                protocols=protocols,
                requires_known_member_id=requires_known_member_id,
                supports_skipping_assignment=supports_skipping_assignment,
            ),
            self.clock.now_ms(),
        )
        if settle:
            self.clock.run_due()
        return response

    def sync(
        self,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance: str | None = None,
    ) -> PendingResponse[SyncResult]:
        group = self.state.coordinator.groups.get("g")
        if generation is None:
            generation = -1 if group is None else group.generation
        request = SyncRequest("g", generation, member_id, instance, None, None, dict(assignments or {}))
        return sync(self.state.coordinator, request, self.clock.now_ms())

    def heartbeat(self, member_id: str, generation: int | None = None, instance: str | None = None) -> int:
        group = self.state.coordinator.groups.get("g")
        if generation is None:
            generation = -1 if group is None else group.generation
        return heartbeat(group, generation, member_id, instance, self.clock.now_ms(), self.state.coordinator.behavior)

    def leave(self, *leaving: tuple[str, str | None]) -> Sequence[int]:
        return leave(self.state.coordinator, "g", leaving, self.clock.now_ms()).errors

    def stable_with(self, count: int, **how: int) -> list[str]:
        """Make the group Stable with a number of members; return their ids, the leader's first."""
        responses = [self.join(settle=False, **how) for _ in range(count)]  # type: ignore[arg-type]  # timeouts
        self.clock.run_due()
        ids = [joined(response).member_id for response in responses]
        for member_id in ids[1:]:
            self.sync(member_id)
        self.sync(ids[0], {member_id: member_id.encode() for member_id in ids})
        assert self.group_state is GroupState.STABLE
        return ids


def joined(response: PendingResponse[JoinResult]) -> JoinResult:
    """Return the result of a JoinGroup, which must be complete and successful."""
    assert response.result is not None, "the response is pending"
    assert response.result.error == 0, response.result
    return response.result


def error_of(response: PendingResponse[JoinResult] | PendingResponse[SyncResult]) -> int:
    assert response.result is not None, "the response is pending"
    return response.result.error
