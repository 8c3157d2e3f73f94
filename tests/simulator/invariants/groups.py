"""Generations only rise, and each partition has at most one owner at a time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from kproto.messages.k11_join_group import JoinGroupRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest
from kproto.messages.k14_sync_group import SyncGroupRequest
from tests.simulator.history import NEVER, Exchange, History
from tests.simulator.invariants.assignments import EPOCH_HEARTBEATS, JOIN_EPOCH, assigned_partitions
from tests.simulator.invariants.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

CLOCK_TOLERANCE = 0.9
"""The clocks of brokers run faster than those of clients by less than this."""


def synced_by_group(history: History) -> dict[str, list[Exchange]]:
    """Return the SyncGroups that succeeded."""
    synced: dict[str, list[Exchange]] = defaultdict(list)
    for one in history.of(SyncGroupRequest):
        if one.response is not None and not one.response.error_code:
            synced[one.request.group_id].append(one)
    return synced


def consumer_groups_of(history: History) -> set[str]:
    """Return the groups that may have had a member with an epoch of its own."""
    return {
        one.request.group_id
        for one in history.of(*EPOCH_HEARTBEATS)
        if one.response is None or not one.response.error_code
    }


def may_have_been_empty(history: History, earlier: Exchange, later: Exchange) -> bool:
    """Return whether a group may have lost its members between two responses, the first of which may be read late.

    A classic group that takes the place of an empty consumer group begins again, in Kafka too.
    """
    return later.received_ms - earlier.sent_ms > history.session_timeout_ms * CLOCK_TOLERANCE


def replaces_member_with_epoch(history: History, join: Exchange) -> bool:
    """Return whether a JoinGroup is that of a static member which has had an epoch.

    If it replaces the last such member, the group becomes a classic one with its targets as the assignment, in Kafka
    too: others do not have to revoke what they have before, and do not learn what they get.
    """
    instance = join.request.group_instance_id
    return instance is not None and any(
        (one.request.group_id, one.request.instance_id) == (join.request.group_id, instance) and one.sent < join.sent
        for one in history.of(*EPOCH_HEARTBEATS)
    )


def check_groups(history: History) -> Iterator[Violation]:
    mixed = consumer_groups_of(history)
    for group, exchanges in synced_by_group(history).items():
        yield from _check_generations(group, exchanges, history, is_mixed=group in mixed)
        yield from _check_owners(group, exchanges, history, is_mixed=group in mixed)
        yield from _check_revocations(group, exchanges, history, is_mixed=group in mixed)
    yield from _check_joins(history, mixed)


def _check_generations(group: str, synced: list[Exchange], history: History, *, is_mixed: bool) -> Iterator[Violation]:
    """A SyncGroup that was sent after the response to another one has no older generation."""
    by_response = sorted(synced, key=lambda one: one.received)
    for later in synced:
        for earlier in by_response:
            if earlier.received > later.sent:
                break
            if earlier.request.generation_id > later.request.generation_id and not (
                is_mixed and may_have_been_empty(history, earlier, later)
            ):
                yield Violation(
                    "generations rise",
                    f"{group}: {later.client} is in generation {later.request.generation_id} at "
                    f"{later.received_ms} ms, after {earlier.request.generation_id}",
                )


def _check_joins(history: History, mixed: Container[str]) -> Iterator[Violation]:
    """As for SyncGroup; but a crash takes a group back to the last generation whose assignment is in the log.

    A classic member that replaces the last static member of a consumer group may get generation 0: in Kafka, it has
    epoch 0 until it is part of an assignment.
    """
    crashes = history.stamps("crash")
    joined: dict[str, list[Exchange]] = defaultdict(list)
    for one in history.of(JoinGroupRequest):
        if one.response is not None and not one.response.error_code:
            joined[one.request.group_id].append(one)
    for group, exchanges in joined.items():
        is_mixed = group in mixed
        for later in exchanges:
            for earlier in exchanges:
                if is_mixed and (not later.response.generation_id or may_have_been_empty(history, earlier, later)):
                    continue
                if (
                    earlier.received < later.sent
                    and earlier.response.generation_id > later.response.generation_id
                    and not any(earlier.sent < stamp < later.received for stamp in crashes)
                ):
                    yield Violation(
                        "generations rise",
                        f"{group}: {later.client} joins generation {later.response.generation_id} at "
                        f"{later.received_ms} ms, after {earlier.response.generation_id}",
                    )


def _check_owners(group: str, synced: list[Exchange], history: History, *, is_mixed: bool) -> Iterator[Violation]:
    """In a generation, a partition has one member, or a static member under its old and its new id."""
    owners: dict[tuple[int, int], Exchange] = {}
    for one in synced:
        generation, instance_id = one.request.generation_id, one.request.group_instance_id
        for partition in assigned_partitions(one):
            owner = owners.setdefault((generation, partition), one)
            if is_mixed and may_have_been_empty(history, owner, one):
                owners[generation, partition] = one
                continue
            is_same = owner.request.member_id == one.request.member_id
            if not is_same and (instance_id is None or instance_id != owner.request.group_instance_id):
                yield Violation(
                    "one owner in a generation",
                    f"{group}: {owner.request.member_id} and {one.request.member_id} own partition {partition} in "
                    f"generation {generation}",
                )


class Ownership(NamedTuple):
    """A member's partitions, from the response that assigned them until it gives them up."""

    synced: Exchange
    ends: float
    """The stamp of the request with which the member gives them up."""
    alive_ms: int
    """Until when the broker may not take them away for a timeout."""


def _check_revocations(group: str, synced: list[Exchange], history: History, *, is_mixed: bool) -> Iterator[Violation]:
    """A member gets a partition only after its owner has given it up, by a request or by silence.

    A consumer group that becomes a classic one is in the log with its targets as the assignment, in Kafka too. If a
    crash ends the rebalance that follows, members get them before others have given them up.
    """
    crashes = history.stamps("crash") if is_mixed else []
    ownerships = [ownership_of(one, history) for one in synced]
    without_revocation = {
        one.response.generation_id
        for one in history.of(JoinGroupRequest)
        if one.request.group_id == group and one.response is not None and replaces_member_with_epoch(history, one)
    }
    for later in synced:
        if later.request.generation_id in without_revocation:
            continue
        partitions = frozenset(assigned_partitions(later))
        instance = later.request.group_instance_id
        for owned in ownerships:
            before = owned.synced
            if before.request.generation_id >= later.request.generation_id or before.received > later.received:
                continue
            if before.request.member_id == later.request.member_id:
                continue
            if any(before.received < stamp < later.sent for stamp in crashes):
                continue
            if instance is not None and instance == before.request.group_instance_id:
                continue
            shared = partitions.intersection(assigned_partitions(before))
            if shared and owned.ends > later.received and later.received_ms < owned.alive_ms:
                yield Violation(
                    "no owner before a revocation",
                    f"{group}: {later.client} gets partitions {sorted(shared)} at {later.received_ms} ms, which "
                    f"{before.client} has had since {before.received_ms} ms",
                )


def ownership_of(synced: Exchange, history: History) -> Ownership:
    """Return how long a member has the partitions that a SyncGroup has assigned to it."""
    member_id, instance = synced.request.member_id, synced.request.group_instance_id
    # The session begins when the JoinGroup is complete; a SyncGroup does not extend it in every release.
    ends, alive_ms, timeout_ms = NEVER, 0, 0
    # While it loads a group, a coordinator of releases up to 3.9 responds to each heartbeat without an error.
    crash = min((stamp for stamp in history.stamps("crash") if stamp > synced.sent), default=NEVER)
    for one in history.exchanges:
        request = one.request
        if isinstance(request, JoinGroupRequest):
            if request.member_id == member_id and one.sent < synced.sent:
                alive_ms = one.sent_ms
                timeout_ms = min(request.session_timeout_ms, request.rebalance_timeout_ms)
            elif one.sent > synced.sent and (
                request.member_id == member_id or (instance is not None and request.group_instance_id == instance)
            ):
                ends = min(ends, one.sent)
        elif isinstance(request, LeaveGroupRequest):
            if any(
                left.member_id == member_id or (instance is not None and left.group_instance_id == instance)
                for left in request.members
            ):
                ends = min(ends, one.sent)
        elif isinstance(request, EPOCH_HEARTBEATS):
            # A static member with an epoch replaces a classic one at once, in Kafka too.
            if (
                instance is not None
                and (request.group_id, request.instance_id) == (synced.request.group_id, instance)
                and request.member_epoch == JOIN_EPOCH
                and one.sent > synced.sent
            ):
                ends = min(ends, one.sent)
        elif (
            isinstance(request, HeartbeatRequest)
            and request.member_id == member_id
            and request.generation_id == synced.request.generation_id
            and one.received < crash
            and one.response is not None
            and not one.response.error_code
        ):
            alive_ms = max(alive_ms, one.sent_ms)
    return Ownership(synced, ends, alive_ms + int(timeout_ms * CLOCK_TOLERANCE))
