"""When faults have stopped, groups converge, clients end, and the broker has reported no defect."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from kproto.messages.k11_join_group import JoinGroupRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k14_sync_group import SyncGroupRequest
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.simulator.invariants.assignments import assigned_partitions
from tests.simulator.invariants.consumer_groups import holdings_of
from tests.simulator.invariants.groups import replaces_member_with_epoch
from tests.simulator.invariants.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.simulator.history import Exchange, History

DEFECTS = frozenset({"closed", "defect", "does not start", "exception"})
"""Events that no client and no fault may cause."""
NONE = -1
EPOCH_MEMBERS = {"consumer_member": ConsumerGroupHeartbeatRequest, "streams_member": StreamsGroupHeartbeatRequest}
"""The heartbeats of clients that have a member epoch."""


def check_convergence(history: History) -> Iterator[Violation]:
    for event in history.events:
        if event.kind in DEFECTS:
            yield Violation("no defects", f"{event.kind} at {event.at_ms} ms: {event.detail}")
        elif event.kind == "client hangs":
            yield Violation("clients end", f"{event.detail} has not ended at {event.at_ms} ms")
    settled = next(iter(history.stamps("settled")), None)
    if settled is not None:
        for text in unconverged(history, history.running, settled):
            yield Violation("groups converge", text)


def unconverged(history: History, running: Mapping[str, str], until: int | None = None) -> Iterator[str]:
    """Yield why the groups of the running clients have not converged, as of a stamp.

    Args:
        running: the kind of each client.
        until: None: now.
    """
    before = history.stamp + 1 if until is None else until
    members: dict[str, list[_Member]] = defaultdict(list)
    yield from _classic_members(history, running, before, members)
    for kind, request_type in EPOCH_MEMBERS.items():
        yield from _epoch_members(history, running, kind, request_type, before, members)
    for group, found in members.items():
        epochs = {one.client: one.epoch for one in found}
        owned = sorted(partition for one in found for partition in one.partitions)
        missing = set(range(history.partition_count)).difference(owned)
        is_split = len(set(epochs.values())) > 1 or len(set(owned)) < len(owned)
        if is_split or (missing and not _has_members_that_wait(history, group, before)):
            yield f"{group}: epochs {epochs}, partitions {owned}"
    yield from _share_groups(history, running, before)


class _Member(NamedTuple):
    """A consumer, its generation or epoch, and its partitions."""

    client: str
    epoch: int
    partitions: tuple[int, ...]


def _latest(
    history: History, running: Mapping[str, str], kind: str, request_type: type, before: int
) -> dict[str, Exchange]:
    """Return the latest response of each client of a kind."""
    return {
        one.client: one for one in history.of(request_type) if running.get(one.client) == kind and one.received < before
    }


def _classic_members(
    history: History, running: Mapping[str, str], before: int, members: dict[str, list[_Member]]
) -> Iterator[str]:
    """Add the members that have heard of their generation again; yield what the others lack."""
    synced = _latest(history, running, "classic_member", SyncGroupRequest, before)
    heartbeats = _latest(history, running, "classic_member", HeartbeatRequest, before)
    for client, kind in running.items():
        if kind != "classic_member":
            continue
        latest, heartbeat = synced.get(client), heartbeats.get(client)
        if latest is None or latest.response.error_code:
            yield f"{client} has no assignment"
        elif heartbeat is None or heartbeat.response.error_code or heartbeat.sent < latest.received:
            yield f"{client} has not heard of its generation again"
        else:
            request = latest.request
            members[request.group_id].append(_Member(client, request.generation_id, assigned_partitions(latest)))


def _has_members_that_wait(history: History, group: str, before: int) -> bool:
    """Return whether the group has the generation with which a static classic member has replaced one with an epoch."""
    joins = [
        one
        for one in history.of(JoinGroupRequest)
        if one.request.group_id == group and one.received < before and not one.response.error_code
    ]
    newest = max((one.response.generation_id for one in joins), default=NONE)
    return any(one.response.generation_id == newest and replaces_member_with_epoch(history, one) for one in joins)


def _epochs(latest: dict[str, Exchange]) -> dict[str, dict[str, int]]:
    """Return the epochs of the members of each group."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for client, one in latest.items():
        found[one.request.group_id][client] = NONE if one.response.error_code else one.response.member_epoch
    return found


def _epoch_members(
    history: History,
    running: Mapping[str, str],
    kind: str,
    request_type: type,
    before: int,
    members: dict[str, list[_Member]],
) -> Iterator[str]:
    """Add the members that have an epoch; yield which have none."""
    latest = _latest(history, running, kind, request_type, before)
    missing = {client for client, its_kind in running.items() if its_kind == kind} - set(latest)
    if missing:
        yield f"{sorted(missing)} have no epoch"
    holdings = holdings_of(history) if latest else []
    for group, epochs in _epochs(latest).items():
        for client, epoch in epochs.items():
            owned = tuple(
                one.partition
                for one in holdings
                if (one.client, one.incarnation) == (client, latest[client].incarnation)
                and one.starts < before < one.ends
            )
            members[group].append(_Member(client, epoch, owned))


def _share_groups(history: History, running: Mapping[str, str], before: int) -> Iterator[str]:
    """All members have the same epoch, and each partition has a member."""
    latest = _latest(history, running, "share_member", ShareGroupHeartbeatRequest, before)
    assigned: dict[str, set[int]] = {}
    for one in history.of(ShareGroupHeartbeatRequest):
        if one.client in latest and one.received < before and one.response.assignment is not None:
            assigned[one.client] = {
                index for topic in one.response.assignment.topic_partitions for index in topic.partitions
            }
    for group, members in _epochs(latest).items():
        covered = set().union(*(assigned.get(client, set()) for client in members))
        if len(set(members.values())) > 1 or covered != set(range(history.partition_count)):
            yield f"{group}: epochs {members}, partitions {sorted(covered)}"
