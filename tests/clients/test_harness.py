"""The harness fails a scenario if a result is missing or wrong, or if a driver skips it without a listed reason."""

import pytest

from tests.clients.scenarios.clients import Client
from tests.clients.scenarios.harness import DriverReport, check
from tests.clients.scenarios.scenarios import SCENARIOS, Scenario

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
LAG = BY_NAME["lag"]
STATIC = BY_NAME["static-member"]
RESULTS = {"beginning": 0, "end": 10, "committed": 4, "lag": 6}
MEMBERS = {"both": [[0, 1], [2, 3]], "again": [0, 1], "rebalances": 0}


def client(**more: object) -> Client:
    return Client(name="some", command=list, **more)  # type: ignore[arg-type]  # a field of any type


def check_report(report: DriverReport, scenario: Scenario = LAG, **more: object) -> tuple[str, str]:
    outcome = check(client(**more), scenario, report, "")
    return outcome.status, outcome.reason.strip()


def test_expected_results_pass() -> None:
    assert check_report(DriverReport(RESULTS, "ok")) == ("passed", "")
    assert check_report(DriverReport(MEMBERS, "ok"), STATIC) == ("passed", "")


def test_a_missing_result_fails() -> None:
    assert check_report(DriverReport({"beginning": 0, "end": 10, "lag": 6}, "ok")) == (
        "failed",
        "`committed` is missing",
    )


def test_a_wrong_value_fails() -> None:
    assert check_report(DriverReport(RESULTS | {"lag": 5}, "ok")) == ("failed", "`lag` is 5, not 6")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"both": [[0, 1, 2], [3]], "again": [0, 1, 2]}, "`both` is [[0, 1, 2], [3]], not two partitions each"),
        ({"both": [[0, 1], [1, 2]]}, "`both` is [[0, 1], [1, 2]], not two partitions each"),
        ({"again": [2, 3]}, "`again` is [2, 3], not the first member's partitions"),
    ],
)
def test_contradicting_results_fail(changed: dict[str, object], reason: str) -> None:
    assert check_report(DriverReport(MEMBERS | changed, "ok"), STATIC) == ("failed", reason)


def test_a_known_result_of_a_client_replaces_the_expected_one() -> None:
    known_results: object = {("lag", "lag"): 5}
    assert check_report(DriverReport(RESULTS | {"lag": 5}, "ok"), known_results=known_results) == ("passed", "")
    assert check_report(DriverReport(RESULTS, "ok"), known_results=known_results) == ("failed", "`lag` is 6, not 5")


def test_a_scenario_without_an_end_fails() -> None:
    assert check_report(DriverReport(RESULTS))[0] == "failed"


def test_a_driver_skips_listed_scenarios_only() -> None:
    skipped = DriverReport(end="unsupported", reason="no such call")
    assert check_report(skipped, unsupported={"lag": "no such call"}) == ("unsupported", "no such call")
    assert check_report(skipped)[0] == "failed"
    assert check_report(DriverReport(RESULTS, "ok"), unsupported={"lag": "no such call"})[0] == "failed"
