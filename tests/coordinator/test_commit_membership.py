"""OC-21 to OC-26: what a group says to a commit, cell by cell and release by release."""

from __future__ import annotations

from typing import NamedTuple

import pytest

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


class Who(NamedTuple):
    """Who a commit says it is by."""

    generation: int = -1
    member_id: str = ""
    instance: str | None = None


GENERATION = 4
SIMPLE = Who()
GHOST_WITHOUT_GENERATION = Who(member_id="ghost")
MEMBER = Who(GENERATION, "m")
MEMBER_WITHOUT_GENERATION = Who(member_id="m")
MEMBER_OF_OLD = Who(GENERATION - 1, "m")
GHOST = Who(GENERATION, "ghost")
GHOST_OF_OLD = Who(GENERATION - 1, "ghost")
NOBODY = Who(GENERATION)

COLUMNS = ("2.0", "2.1", "2.3", "2.4", "2.8", "3.2", "3.9", "4.4", "latest")


def error(kafka_version: str, group: Group | None, who: Who, version: int = 8) -> int:
    request = commit_request(
        "g",
        {"t": {0: 1}},
        generation_id_or_member_epoch=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance,
    )
    return commit_error(group, request, version, behavior_of(kafka_version))


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
def test_unknown_group_takes_simple_commits_only(kafka_version: str) -> None:
    """OC-21; "simple" is any negative generation."""
    assert error(kafka_version, None, SIMPLE) == 0
    assert error(kafka_version, None, Who(generation=-7)) == 0
    assert error(kafka_version, None, MEMBER) == 22
    assert error(kafka_version, None, Who(generation=0)) == 22


@pytest.mark.parametrize(("kafka_version", "expected"), [("3.9", 22), ("4.0", 69), ("4.4", 69), ("latest", 69)])
def test_unknown_group_with_a_generation_from_v9_on(kafka_version: str, expected: int) -> None:
    """OC-21: GROUP_ID_NOT_FOUND is the new coordinator's."""
    assert [error(kafka_version, None, MEMBER, version) for version in (8, 9)] == [22, expected]


@pytest.mark.parametrize(
    ("kafka_version", "expected"), [("2.0", 25), ("2.2", 25), ("2.3", 15), ("2.4", 15), ("4.4", 15)]
)
def test_dead_group(kafka_version: str, expected: int) -> None:
    """OC-22: the member has to look for the coordinator again, from 2.3 on."""
    assert error(kafka_version, classic(DEAD), MEMBER) == expected
    assert error(kafka_version, classic(DEAD), SIMPLE) == expected


@pytest.mark.parametrize("kafka_version", COLUMNS)
@pytest.mark.parametrize(
    ("state", "who", "expected"),
    [
        (EMPTY, SIMPLE, 0),
        (EMPTY, Who(generation=-7), 0),
        (EMPTY, MEMBER, 25),
        (EMPTY, NOBODY, 25),
        (STABLE, MEMBER, 0),
        (STABLE, MEMBER_OF_OLD, 22),
        (STABLE, MEMBER_WITHOUT_GENERATION, 22),
        (STABLE, GHOST, 25),
        (STABLE, GHOST_OF_OLD, 25),
        (STABLE, GHOST_WITHOUT_GENERATION, 25),
        (STABLE, SIMPLE, 25),
        (STABLE, NOBODY, 25),
        (PREPARING, MEMBER, 0),
        (PREPARING, MEMBER_OF_OLD, 22),
        (PREPARING, GHOST, 25),
        (PREPARING, SIMPLE, 25),
        (COMPLETING, MEMBER, 27),
    ],
)
def test_cells_that_all_releases_share(kafka_version: str, state: GroupState, who: Who, expected: int) -> None:
    """OC-22, OC-24, OC-27: a commit of the generation before is good until the next one has begun."""
    assert error(kafka_version, classic(state), who) == expected


@pytest.mark.parametrize("kafka_version", COLUMNS)
@pytest.mark.parametrize(("who", "since_2_4"), [(MEMBER_OF_OLD, 22), (GHOST, 25), (SIMPLE, 25), (NOBODY, 25)])
def test_completing_rebalance_hid_membership_up_to_2_3(kafka_version: str, who: Who, since_2_4: int) -> None:
    """OC-22: 27 for everyone, later only for those whom nothing else is wrong with."""
    expected = 27 if kafka_version in ("2.0", "2.1", "2.3") else since_2_4
    assert error(kafka_version, classic(COMPLETING), who) == expected


@pytest.mark.parametrize(
    ("kafka_version", "expected"),
    [("2.8", 0), ("3.0", 25), ("3.2", 25), ("3.3", 0), ("3.9", 0), ("4.4", 0), ("2.0", 0)],
)
def test_simple_commit_that_names_a_member(kafka_version: str, expected: int) -> None:
    """OC-21, OC-22: ignored in all releases but 3.0 to 3.2, where the member has to exist."""
    assert error(kafka_version, classic(EMPTY), GHOST_WITHOUT_GENERATION) == expected
    assert error(kafka_version, None, GHOST_WITHOUT_GENERATION) == expected
    assert error(kafka_version, classic(EMPTY), Who(instance="i")) == expected
    assert error(kafka_version, classic(EMPTY), SIMPLE) == 0


@pytest.mark.parametrize("kafka_version", ["2.3", "2.4", "2.8", "3.0", "3.9", "4.4", "latest"])
@pytest.mark.parametrize("state", [STABLE, PREPARING, COMPLETING])
def test_static_member_under_another_id_is_fenced_before_all_else(kafka_version: str, state: GroupState) -> None:
    """OC-22, OC-23."""
    assert error(kafka_version, classic(state), Who(GENERATION, "ghost", "i")) == 82
    assert error(kafka_version, classic(state), Who(77, "m", "i")) == 82


@pytest.mark.parametrize("kafka_version", ["2.3", "2.8", "3.9", "4.4"])
def test_static_member_may_leave_its_instance_out(kafka_version: str) -> None:
    """OC-23."""
    assert error(kafka_version, classic(STABLE), Who(GENERATION, "static")) == 0
    assert error(kafka_version, classic(STABLE), Who(GENERATION, "static", "i")) == 0


@pytest.mark.parametrize(("kafka_version", "expected"), [("2.3", 0), ("2.8", 0), ("3.0", 25), ("3.9", 25), ("4.4", 25)])
def test_unknown_instance(kafka_version: str, expected: int) -> None:
    """OC-23: from 3.0 on; 2.8.2 takes the commit."""
    assert error(kafka_version, classic(STABLE), Who(GENERATION, "m", "nobody")) == expected


def consumer(*, speaks_classic: bool = False, members: int = 1) -> Group:
    group = Group("g", 0, "consumer")
    group.generation = 9
    for _ in range(members):
        group.add_member(Member("m", epoch=5, speaks_classic=speaks_classic))
    group.transition_to(STABLE if members else EMPTY, 0)
    return group


@pytest.mark.parametrize(
    ("who", "version", "expected"),
    [
        (Who(5, "m"), 9, 0),
        (Who(5, "m", "any"), 9, 0),
        (Who(5, "m"), 8, 35),
        (Who(6, "m"), 8, 35),
        (Who(6, "m"), 9, 113),
        (Who(4, "m"), 9, 113),
        (Who(5, "ghost"), 9, 25),
        (Who(5, "ghost"), 8, 25),
        (SIMPLE, 9, 25),
        (Who(-1, "m"), 9, 113),
    ],
)
def test_consumer_group_checks_the_member_s_epoch(who: Who, version: int, expected: int) -> None:
    """OC-26."""
    assert error("4.4", consumer(), who, version) == expected


def test_consumer_group_without_members_takes_simple_commits() -> None:
    """OC-26."""
    assert error("4.4", consumer(members=0), SIMPLE, 9) == 0
    assert error("4.4", consumer(members=0), Who(0, "m"), 9) == 25


def test_member_that_speaks_classic_hears_classic_errors() -> None:
    """OC-26: generation rather than epoch, and any version will do."""
    assert error("4.4", consumer(speaks_classic=True), Who(4, "m"), 8) == 22
    assert error("4.4", consumer(speaks_classic=True), Who(5, "m"), 8) == 0
