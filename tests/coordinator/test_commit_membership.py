"""OC-21 to OC-26: which commits a group accepts, by its state, by the committing member and by release."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kproto.codes import ErrorCode
from kproto_server.coordinator.commit import commit_error
from kproto_server.coordinator.groups import Group, GroupState, Member
from tests.coordinator.behaviors import behavior_of
from tests.coordinator.broker_state import commit_request

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
    GroupState.DEAD,
)


class CommitIdentity(NamedTuple):
    """The identity in a commit."""

    generation: int = -1
    member_id: str = ""
    instance: str | None = None


GENERATION = 4
SIMPLE = CommitIdentity()
GHOST_WITHOUT_GENERATION = CommitIdentity(member_id="ghost")
MEMBER = CommitIdentity(GENERATION, "m")
MEMBER_WITHOUT_GENERATION = CommitIdentity(member_id="m")
MEMBER_OF_OLD = CommitIdentity(GENERATION - 1, "m")
GHOST = CommitIdentity(GENERATION, "ghost")
GHOST_OF_OLD = CommitIdentity(GENERATION - 1, "ghost")
NO_MEMBER = CommitIdentity(GENERATION)

COLUMNS = ("2.0", "2.1", "2.3", "2.4", "2.8", "3.2", "3.9", "4.4", "latest")


def error(kafka_version: str, group: Group | None, identity: CommitIdentity, version: int = 8) -> int:
    request = commit_request(
        "g",
        {"t": {0: 1}},
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance,
    )
    return commit_error(group, request, version, behavior_of(kafka_version), {})


def classic(state: GroupState) -> Group:
    group = Group("g", 0)
    group.generation = GENERATION
    group.protocol_type = "consumer"
    if state is not EMPTY:
        group.add_member(Member("m"))
        group.add_member(Member("static", group_instance_id="i"))
    group.transition_to(state, 0)
    return group


@pytest.mark.parametrize("kafka_version", COLUMNS)
def test_unknown_group_accepts_simple_commits_only(kafka_version: str) -> None:
    """OC-21; a commit is simple if its generation is negative."""
    assert error(kafka_version, None, SIMPLE) == 0
    assert error(kafka_version, None, CommitIdentity(generation=-7)) == 0
    assert error(kafka_version, None, MEMBER) == ErrorCode.ILLEGAL_GENERATION
    assert error(kafka_version, None, CommitIdentity(generation=0)) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("kafka_version", "expected"),
    [
        ("3.9", ErrorCode.ILLEGAL_GENERATION),
        ("4.0", ErrorCode.GROUP_ID_NOT_FOUND),
        ("4.4", ErrorCode.GROUP_ID_NOT_FOUND),
        ("latest", ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_unknown_group_with_a_generation_from_v9_on(kafka_version: str, expected: int) -> None:
    """OC-21: the new coordinator returns GROUP_ID_NOT_FOUND."""
    assert [error(kafka_version, None, MEMBER, version) for version in (8, 9)] == [22, expected]


@pytest.mark.parametrize(
    ("kafka_version", "expected"),
    [
        ("2.0", ErrorCode.UNKNOWN_MEMBER_ID),
        ("2.2", ErrorCode.UNKNOWN_MEMBER_ID),
        ("2.3", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("2.4", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("4.4", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_dead_group(kafka_version: str, expected: int) -> None:
    """OC-22: since 2.3 the member has to find the coordinator again."""
    assert error(kafka_version, classic(DEAD), MEMBER) == expected
    assert error(kafka_version, classic(DEAD), SIMPLE) == expected


@pytest.mark.parametrize("kafka_version", COLUMNS)
@pytest.mark.parametrize(
    ("state", "identity", "expected"),
    [
        (EMPTY, SIMPLE, 0),
        (EMPTY, CommitIdentity(generation=-7), 0),
        (EMPTY, MEMBER, ErrorCode.UNKNOWN_MEMBER_ID),
        (EMPTY, NO_MEMBER, ErrorCode.UNKNOWN_MEMBER_ID),
        (STABLE, MEMBER, 0),
        (STABLE, MEMBER_OF_OLD, ErrorCode.ILLEGAL_GENERATION),
        (STABLE, MEMBER_WITHOUT_GENERATION, ErrorCode.ILLEGAL_GENERATION),
        (STABLE, GHOST, ErrorCode.UNKNOWN_MEMBER_ID),
        (STABLE, GHOST_OF_OLD, ErrorCode.UNKNOWN_MEMBER_ID),
        (STABLE, GHOST_WITHOUT_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID),
        (STABLE, SIMPLE, ErrorCode.UNKNOWN_MEMBER_ID),
        (STABLE, NO_MEMBER, ErrorCode.UNKNOWN_MEMBER_ID),
        (PREPARING, MEMBER, 0),
        (PREPARING, MEMBER_OF_OLD, ErrorCode.ILLEGAL_GENERATION),
        (PREPARING, GHOST, ErrorCode.UNKNOWN_MEMBER_ID),
        (PREPARING, SIMPLE, ErrorCode.UNKNOWN_MEMBER_ID),
        (COMPLETING, MEMBER, ErrorCode.REBALANCE_IN_PROGRESS),
    ],
)
def test_errors_that_all_releases_share(
    kafka_version: str, state: GroupState, identity: CommitIdentity, expected: int
) -> None:
    """OC-22, OC-24, OC-27: a commit of the old generation is accepted until the next one begins."""
    assert error(kafka_version, classic(state), identity) == expected


@pytest.mark.parametrize("kafka_version", COLUMNS)
@pytest.mark.parametrize(
    ("identity", "since_2_4"),
    [
        (MEMBER_OF_OLD, ErrorCode.ILLEGAL_GENERATION),
        (GHOST, ErrorCode.UNKNOWN_MEMBER_ID),
        (SIMPLE, ErrorCode.UNKNOWN_MEMBER_ID),
        (NO_MEMBER, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_completing_rebalance_hid_membership_up_to_2_3(
    kafka_version: str, identity: CommitIdentity, since_2_4: int
) -> None:
    """OC-22: REBALANCE_IN_PROGRESS before all other errors; since 2.4 after them."""
    expected = ErrorCode.REBALANCE_IN_PROGRESS if kafka_version in ("2.0", "2.1", "2.3") else since_2_4
    assert error(kafka_version, classic(COMPLETING), identity) == expected


@pytest.mark.parametrize(
    ("kafka_version", "expected"),
    [
        ("2.8", 0),
        ("3.0", ErrorCode.UNKNOWN_MEMBER_ID),
        ("3.2", ErrorCode.UNKNOWN_MEMBER_ID),
        ("3.3", 0),
        ("3.9", 0),
        ("4.4", 0),
        ("2.0", 0),
    ],
)
def test_simple_commit_that_names_a_member(kafka_version: str, expected: int) -> None:
    """OC-21, OC-22: the name is ignored, but from 3.0 to 3.2 the member has to exist."""
    assert error(kafka_version, classic(EMPTY), GHOST_WITHOUT_GENERATION) == expected
    assert error(kafka_version, None, GHOST_WITHOUT_GENERATION) == expected
    assert error(kafka_version, classic(EMPTY), CommitIdentity(instance="i")) == expected
    assert error(kafka_version, classic(EMPTY), SIMPLE) == 0


@pytest.mark.parametrize("kafka_version", ["2.3", "2.4", "2.8", "3.0", "3.9", "4.4", "latest"])
@pytest.mark.parametrize("state", [STABLE, PREPARING, COMPLETING])
def test_static_member_under_another_id_is_fenced_before_all_else(kafka_version: str, state: GroupState) -> None:
    """OC-22, OC-23."""
    assert (
        error(kafka_version, classic(state), CommitIdentity(GENERATION, "ghost", "i")) == ErrorCode.FENCED_INSTANCE_ID
    )
    assert error(kafka_version, classic(state), CommitIdentity(77, "m", "i")) == ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("kafka_version", ["2.3", "2.8", "3.9", "4.4"])
def test_static_member_may_leave_its_instance_out(kafka_version: str) -> None:
    """OC-23."""
    assert error(kafka_version, classic(STABLE), CommitIdentity(GENERATION, "static")) == 0
    assert error(kafka_version, classic(STABLE), CommitIdentity(GENERATION, "static", "i")) == 0


@pytest.mark.parametrize(
    ("kafka_version", "expected"),
    [
        ("2.3", 0),
        ("2.8", 0),
        ("3.0", ErrorCode.UNKNOWN_MEMBER_ID),
        ("3.9", ErrorCode.UNKNOWN_MEMBER_ID),
        ("4.4", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_unknown_instance(kafka_version: str, expected: int) -> None:
    """OC-23: rejected since 3.0; 2.8.2 accepts the commit."""
    assert error(kafka_version, classic(STABLE), CommitIdentity(GENERATION, "m", "unknown")) == expected


def consumer(*, speaks_classic: bool = False, members: int = 1) -> Group:
    group = Group("g", 0, "consumer")
    group.generation = 9
    for _ in range(members):
        group.add_member(Member("m", epoch=5, speaks_classic=speaks_classic))
    group.transition_to(STABLE if members else EMPTY, 0)
    return group


@pytest.mark.parametrize(
    ("identity", "version", "expected"),
    [
        (CommitIdentity(5, "m"), 9, 0),
        (CommitIdentity(5, "m", "any"), 9, 0),
        (CommitIdentity(5, "m"), 8, 35),
        (CommitIdentity(6, "m"), 8, 35),
        (CommitIdentity(6, "m"), 9, ErrorCode.STALE_MEMBER_EPOCH),
        (CommitIdentity(4, "m"), 9, ErrorCode.STALE_MEMBER_EPOCH),
        (CommitIdentity(5, "ghost"), 9, ErrorCode.UNKNOWN_MEMBER_ID),
        (CommitIdentity(5, "ghost"), 8, ErrorCode.UNKNOWN_MEMBER_ID),
        (SIMPLE, 9, ErrorCode.UNKNOWN_MEMBER_ID),
        (CommitIdentity(-1, "m"), 9, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_consumer_group_checks_the_member_epoch(identity: CommitIdentity, version: int, expected: int) -> None:
    """OC-26."""
    assert error("4.4", consumer(), identity, version) == expected


def test_consumer_group_without_members_accepts_simple_commits() -> None:
    """OC-26."""
    assert error("4.4", consumer(members=0), SIMPLE, 9) == 0
    assert error("4.4", consumer(members=0), CommitIdentity(0, "m"), 9) == ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_uses_classic_protocol_gets_classic_errors() -> None:
    """OC-26: a member that uses the classic protocol commits with a generation, in any version."""
    assert error("4.4", consumer(speaks_classic=True), CommitIdentity(4, "m"), 8) == ErrorCode.ILLEGAL_GENERATION
    assert error("4.4", consumer(speaks_classic=True), CommitIdentity(5, "m"), 8) == 0
