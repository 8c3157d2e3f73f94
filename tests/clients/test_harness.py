"""The harness takes nothing on trust: what a driver leaves out, invents or tells differently is a failure."""

import pytest

from tests.clients.scenarios.clients import Client
from tests.clients.scenarios.harness import Told, judge
from tests.clients.scenarios.scenarios import SCENARIOS, Scenario

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
LAG = BY_NAME["lag"]
STATIC = BY_NAME["static-member"]
FACTS = {"beginning": 0, "end": 10, "committed": 4, "lag": 6}
MEMBERS = {"both": [[0, 1], [2, 3]], "again": [0, 1], "rebalances": 0}


def client(**more: object) -> Client:
    return Client(name="some", command=list, **more)  # type: ignore[arg-type]  # a field of any type


def verdict(said: Told, scenario: Scenario = LAG, **more: object) -> tuple[str, str]:
    outcome = judge(client(**more), scenario, said, "")
    return outcome.verdict, outcome.why.strip()


def test_all_facts_as_expected_pass() -> None:
    assert verdict(Told(FACTS, "ok")) == ("passed", "")
    assert verdict(Told(MEMBERS, "ok"), STATIC) == ("passed", "")


def test_a_fact_that_is_not_told_fails() -> None:
    assert verdict(Told({"beginning": 0, "end": 10, "lag": 6}, "ok")) == ("failed", "`committed` is not told")


def test_another_value_fails() -> None:
    assert verdict(Told(FACTS | {"lag": 5}, "ok")) == ("failed", "`lag` is 5, not 6")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            {"both": [[0, 1, 2], [3]], "again": [0, 1, 2]},
            "`both` is [[0, 1, 2], [3]], not two partitions for each of both",
        ),
        ({"both": [[0, 1], [1, 2]]}, "`both` is [[0, 1], [1, 2]], not two partitions for each of both"),
        ({"again": [2, 3]}, "`again` is [2, 3], not what the first had"),
    ],
)
def test_a_value_that_contradicts_the_others_fails(changed: dict[str, object], why: str) -> None:
    assert verdict(Told(MEMBERS | changed, "ok"), STATIC) == ("failed", why)


def test_a_client_of_which_another_value_is_known_has_to_tell_that_one() -> None:
    told: object = {("lag", "lag"): 5}
    assert verdict(Told(FACTS | {"lag": 5}, "ok"), told=told) == ("passed", "")
    assert verdict(Told(FACTS, "ok"), told=told) == ("failed", "`lag` is 6, not 5")


def test_a_scenario_without_an_end_fails() -> None:
    assert verdict(Told(FACTS))[0] == "failed"


def test_a_driver_leaves_out_only_what_the_list_says() -> None:
    skipped = Told(end="unsupported", why="no call for it")
    assert verdict(skipped, unsupported={"lag": "no such call"}) == ("unsupported", "no such call")
    assert verdict(skipped)[0] == "failed"
    assert verdict(Told(FACTS, "ok"), unsupported={"lag": "no such call"})[0] == "failed"
