"""Real clients share a topic, and go on when one of them goes.

Method: a program for each client (`members.py`) has two consumers in one group and tells what each was assigned.
"""

import pytest

from tests.clients.admin import create_topic
from tests.clients.conftest import TestedBroker
from tests.clients.members import PROGRAMS, MembersProgram, run

PARTITIONS = [0, 1, 2, 3]


@pytest.fixture(scope="module")
def topic(broker: TestedBroker) -> str:
    create_topic(broker.bootstrap, "shared", partitions=len(PARTITIONS))
    return "shared"


def programs(verb: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "program",
        [
            pytest.param(p, id=p.name, marks=[pytest.mark.oracle] if p.needs_java else [])
            for p in PROGRAMS
            if verb in p.verbs
        ],
    )


@programs("dynamic")
def test_two_members_share_and_one_gets_all_when_the_other_leaves(
    program: MembersProgram, broker: TestedBroker, topic: str
) -> None:
    told = run(program, broker.bootstrap, f"dynamic-{program.name}", topic, "dynamic")
    assert sorted(told["both"][0] + told["both"][1]) == PARTITIONS
    assert told["alone"] == PARTITIONS


@programs("cooperative")
def test_partitions_move_one_by_one(program: MembersProgram, broker: TestedBroker, topic: str) -> None:
    told = run(program, broker.bootstrap, f"cooperative-{program.name}", topic, "cooperative")
    assert sorted(told["both"][0] + told["both"][1]) == PARTITIONS
    assert told["alone"] == PARTITIONS


@programs("static")
def test_a_static_member_comes_back_to_what_it_had(program: MembersProgram, broker: TestedBroker, topic: str) -> None:
    """GP-34."""
    told = run(program, broker.bootstrap, f"static-{program.name}", topic, "static")
    assert sorted(told["both"][0] + told["both"][1]) == PARTITIONS
    assert told["again"] == told["both"][0]
    assert told["rebalances"] == 0
