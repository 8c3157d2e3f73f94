"""Consumer groups (KIP-848) and streams groups (KIP-1071): epochs rise, and a partition, or the task that reads it,
changes its owner only after the owner has revoked it.

Some members of a group may have the classic protocol, and a group changes its kind with its members.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kproto.messages.k11_join_group import JoinGroupRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.simulator.history import NEVER, Exchange, History
from tests.simulator.invariants.assignments import (
    EPOCH_HEARTBEATS,
    JOIN_EPOCH,
    assigned_partitions,
    given_partitions,
    kept_partitions,
)
from tests.simulator.invariants.groups import consumer_groups_of, may_have_been_empty, ownership_of, synced_by_group
from tests.simulator.invariants.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CLOCK_TOLERANCE = 0.9
"""The clocks of brokers run faster than those of clients by less than this."""


GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID = 69, 25


@dataclass(slots=True, eq=False)
class Holding:
    """A partition of a member, from the response that assigned it to the request that gives it up."""

    group: str
    member_id: str
    instance_id: str | None
    client: str
    incarnation: int
    partition: int
    asked: int
    """The stamp of the request whose response assigned it: a client that was paused reads a response late."""
    starts: float
    starts_ms: int
    ends: float = NEVER
    kept_until_ms: int = 0
    """Until when the broker may not take it away for a timeout."""
    is_classic: bool = False
    """Whether the member has the classic protocol."""


def holdings_of(history: History) -> list[Holding]:
    """Return the holdings of all members of consumer groups, in the order of their starts."""
    by_member: dict[tuple[str, int], list[Exchange]] = defaultdict(list)
    for one in history.of(*EPOCH_HEARTBEATS):
        by_member[one.client, one.incarnation].append(one)
    found = [holding for exchanges in by_member.values() for holding in _holdings(exchanges, history)]
    return sorted(found, key=lambda holding: holding.starts)


def all_holdings(history: History) -> list[Holding]:
    """Return the holdings of all members of consumer groups, those with the classic protocol included."""
    groups = consumer_groups_of(history)
    found = holdings_of(history)
    for group, exchanges in synced_by_group(history).items():
        for one in exchanges if group in groups else ():
            ownership = ownership_of(one, history)
            found += [
                Holding(
                    group,
                    one.request.member_id,
                    one.request.group_instance_id,
                    one.client,
                    one.incarnation,
                    partition,
                    one.sent,
                    one.received,
                    one.received_ms,
                    ownership.ends,
                    ownership.alive_ms,
                    is_classic=True,
                )
                for partition in assigned_partitions(one)
            ]
    for holding in found:
        if holding.instance_id is not None:
            holding.ends = min([holding.ends, *_replacements(history, holding)])
    return sorted(found, key=lambda holding: holding.starts)


def _replacements(history: History, holding: Holding) -> Iterator[int]:
    """Yield when members joined that replace a static one at once, as one of the two has the classic protocol."""
    for one in history.of(JoinGroupRequest, *EPOCH_HEARTBEATS):
        request = one.request
        if one.sent <= holding.starts or request.group_id != holding.group:
            continue
        if isinstance(request, JoinGroupRequest):
            if request.group_instance_id == holding.instance_id:
                yield one.sent
        elif holding.is_classic and request.instance_id == holding.instance_id and request.member_epoch == JOIN_EPOCH:
            yield one.sent


def _holdings(exchanges: Iterable[Exchange], history: History) -> list[Holding]:
    found: list[Holding] = []
    held: dict[int, Holding] = {}
    rebalance_timeout_ms = 0
    may_revoke_ms: dict[int, int] = {}
    """When the broker may have asked for a partition, which begins the rebalance timeout."""
    alive_ms = 0
    for one in exchanges:
        request, response = one.request, one.response
        rebalance_timeout_ms = max(rebalance_timeout_ms, request.rebalance_timeout_ms)
        said = kept_partitions(request)
        kept = set(held) if said is None else said
        if request.member_epoch <= 0:
            kept = set()
        for partition in set(held) - kept:
            held.pop(partition).ends = one.sent
        if response is None:
            for partition in held:
                may_revoke_ms.setdefault(partition, one.sent_ms)
        elif not response.error_code and request.member_epoch >= 0:
            alive_ms = one.sent_ms + int(history.session_timeout_ms * CLOCK_TOLERANCE)
            assigned = given_partitions(one)
            if assigned is not None:
                for partition in set(held) - assigned:
                    may_revoke_ms.setdefault(partition, one.sent_ms)
                for partition in sorted(assigned - set(held)):
                    may_revoke_ms.pop(partition, None)
                    held[partition] = Holding(
                        request.group_id,
                        response.member_id or request.member_id,
                        request.instance_id,
                        one.client,
                        one.incarnation,
                        partition,
                        one.sent,
                        one.received,
                        one.received_ms,
                    )
                    found.append(held[partition])
        for partition, holding in held.items():
            limit_ms = may_revoke_ms.get(partition)
            revoked_ms = alive_ms if limit_ms is None else limit_ms + int(rebalance_timeout_ms * CLOCK_TOLERANCE)
            holding.kept_until_ms = min(alive_ms, revoked_ms)
    return found


def check_consumer_groups(history: History) -> Iterator[Violation]:
    holdings = all_holdings(history)
    for later in holdings:
        for earlier in holdings:
            if earlier.starts >= later.starts:
                break
            if earlier.is_classic and later.is_classic:
                continue  # `check_groups` compares them
            if (earlier.group, earlier.partition) != (later.group, later.partition):
                continue
            is_same_member = earlier.member_id == later.member_id
            if is_same_member or (later.instance_id is not None and later.instance_id == earlier.instance_id):
                continue
            if earlier.starts < later.asked and earlier.ends > later.starts and later.starts_ms < earlier.kept_until_ms:
                yield Violation(
                    "no owner before a revocation",
                    f"{later.group}: {later.client} gets partition {later.partition} at {later.starts_ms} ms, which "
                    f"{earlier.client} has had since {earlier.starts_ms} ms",
                )
    yield from _check_epochs(history)
    yield from _check_members(history)


def _check_epochs(history: History) -> Iterator[Violation]:
    """The epoch of a member never falls."""
    mixed = synced_by_group(history)
    latest: dict[tuple[str, str], Exchange] = {}
    for one in history.of(*EPOCH_HEARTBEATS):
        response = one.response
        if response is None or response.error_code or response.member_epoch <= 0:
            continue
        member = one.request.group_id, response.member_id or one.request.member_id
        before = latest.get(member)
        has_fallen = before is not None and response.member_epoch < before.response.member_epoch
        if before is None or not has_fallen or (member[0] in mixed and may_have_been_empty(history, before, one)):
            latest[member] = one
        else:
            yield Violation(
                "epochs rise",
                f"{member}: epoch {response.member_epoch} at {one.received_ms} ms, after "
                f"{before.response.member_epoch}",
            )


def _check_members(history: History) -> Iterator[Violation]:
    """A group does not forget its members before their sessions expire: neither their records nor a crash end them."""
    # A group that has lost its last member with the new protocol becomes a classic one.
    mixed = synced_by_group(history)
    alive: dict[tuple[str, int], Exchange] = {}
    for one in history.of(*EPOCH_HEARTBEATS, ShareGroupHeartbeatRequest):
        member, response = (one.client, one.incarnation), one.response
        before = alive.get(member)
        if response is None or one.request.member_epoch <= 0:
            alive.pop(member, None)
        if response is None:
            continue
        if not response.error_code and one.request.member_epoch >= 0:
            alive[member] = one
        elif before is not None and one.request.member_epoch > 0:
            # A member of a consumer group is also removed when it does not revoke partitions in time.
            is_share = isinstance(one.request, ShareGroupHeartbeatRequest)
            is_lost = (response.error_code == GROUP_ID_NOT_FOUND and one.request.group_id not in mixed) or (
                is_share and response.error_code == UNKNOWN_MEMBER_ID
            )
            if is_lost and one.received_ms < before.sent_ms + history.session_timeout_ms * CLOCK_TOLERANCE:
                yield Violation(
                    "members are kept",
                    f"{one.request.group_id}: {one.client} gets error {response.error_code} at {one.received_ms} ms, "
                    f"and was a member at {before.sent_ms} ms",
                )


def given_to_others(holdings: Iterable[Holding], group: str, member_id: str, partition: int, sent: float) -> float:
    """Return the stamp at which another member had the partition that a member owned when it sent a commit."""
    mine = [one for one in holdings if (one.group, one.partition) == (group, partition)]
    began = max((one.starts for one in mine if one.member_id == member_id and one.starts < sent), default=NEVER)
    return min((one.starts for one in mine if one.member_id != member_id and one.asked > began), default=NEVER)
