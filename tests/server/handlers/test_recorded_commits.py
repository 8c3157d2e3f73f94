"""kproto returns the OffsetCommit responses of eight releases, 0.10.2.2 to 4.4.0, with the Kafka version of each.

Not asked: what needs an authorizer ("denied" in the note).
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto_server.coordinator.groups import GroupState, Member
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import group_with
from tests.coordinator.consumer_group import add_consumer_group
from tests.server.handlers.recorded import RELEASES, conversation, recorded_state, replay


def _stable(state: BrokerState, request: Any) -> None:
    """Create a group of generation 1 with the member of the request, or another member if the request names "ghost"."""
    member_id = request.member_id if request.member_id not in ("", "ghost") else "other"
    group_with(state, request.group_id, GroupState.STABLE, [Member(member_id)])


def _in_state(group_state: GroupState, generation: int) -> Any:
    def prepare(state: BrokerState, request: Any) -> None:
        member_id = request.member_id if request.member_id not in ("", "ghost") else "other"
        group_with(state, request.group_id, group_state, [Member(member_id)], generation=generation)

    return prepare


def _static(state: BrokerState, request: Any) -> None:
    member_id = request.member_id if request.member_id != "ghost" else "inst-1-other"
    group_with(state, request.group_id, GroupState.STABLE, [Member(member_id, group_instance_id="inst-1")])


def _empty(state: BrokerState, request: Any) -> None:
    group_with(state, request.group_id, GroupState.EMPTY, generation=request.generation_id_or_member_epoch + 1)


def _consumer(state: BrokerState, request: Any) -> None:
    member_id = request.member_id if request.member_id != "ghost" else "other"
    add_consumer_group(state.coordinator, 0, member_id, group_id=request.group_id, epoch=2)


PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE

SITUATIONS = {
    "member of a Stable group": _stable,
    "member of a Stable group, generation one too high": _stable,
    "Stable group, unknown member, right generation": _stable,
    "Stable group, unknown member, wrong generation": _stable,
    "Stable group, simple consumer (generation -1, no member)": _stable,
    "Stable group, right generation, empty member": _stable,
    "Stable group of a dynamic member, a group instance id given": _stable,
    "PreparingRebalance: member with the current generation": _in_state(PREPARING, 1),
    "PreparingRebalance: wrong generation": _in_state(PREPARING, 1),
    "PreparingRebalance: the joining member, current generation": _in_state(PREPARING, 1),
    "PreparingRebalance: simple consumer": _in_state(PREPARING, 1),
    "CompletingRebalance: current generation, before SyncGroup": _in_state(COMPLETING, 2),
    "CompletingRebalance: old generation": _in_state(COMPLETING, 2),
    "Empty after all left: last generation and member": _empty,
    "static member, no instance given": _static,
    "static member, other member id: fenced": _static,
    "static member, unknown instance": _static,
    "static member, other member id and wrong generation": _static,
    "KIP-848 group: epoch too high": _consumer,
    "KIP-848 group: unknown member": _consumer,
    "KIP-848 group, OffsetCommit v8": _consumer,
    "KIP-848 group, OffsetCommit v8, epoch too low": _consumer,
}


@pytest.mark.parametrize("release", RELEASES)
def test_commit_responses_equal_the_recorded_ones(release: str) -> None:
    """OC-2 to OC-26, OC-30 to OC-32, OC-41, in every version that the release has.

    The bytes are equal (also OC-4, OC-7, BA-15). A null group id gets no response (OC-8, BA-14).
    """
    pairs = [pair for pair in conversation("OffsetCommit", release) if "denied" not in pair.note]
    assert len(pairs) > 60
    assert replay(release, pairs, recorded_state(release, pairs), SITUATIONS) == []
