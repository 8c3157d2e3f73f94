"""Ratios, tables, JSON and floors, computed from made-up figures; nothing is timed."""

from __future__ import annotations

import json

from bench.model import Lead, Limit, Metric, Near, Row
from bench.table import as_json, as_line, as_table, check_floors

RATE = Metric(key="requests_per_s", title="requests/s", more_is_better=True, compared=True, digits=0)
TIME = Metric(key="p50_us", title="p50 us", compared=True)
METRICS = [RATE, TIME]
ROW = Row(
    bench="commit",
    case="1x1",
    figures={
        "kproto": {"requests_per_s": 60000.0, "p50_us": 10.0},
        "kfake": {"requests_per_s": 20000.0, "p50_us": 25.0},
    },
)
WITHOUT_KPROTO = Row(bench="commit", case="1x1", figures={"kfake": {"requests_per_s": 20000.0, "p50_us": 25.0}})


def test_a_lead_is_above_one_for_each_metric_in_which_kproto_is_better() -> None:
    assert ROW.lead("kfake", RATE) == 3.0
    assert ROW.lead("kfake", TIME) == 2.5
    assert RATE.lead(10.0, 20.0) == 0.5
    assert TIME.lead(10.0, 5.0) == 0.5


def test_a_lead_without_a_measurement_is_none() -> None:
    assert ROW.lead("kafka", RATE) is None
    assert WITHOUT_KPROTO.lead("kfake", RATE) is None
    assert TIME.lead(0.0, 5.0) is None


def test_a_lead_over_what_is_compared_round_by_round_is_the_median_of_its_rounds() -> None:
    def rounds(*rates: float) -> list[dict[str, float]]:
        return [{"requests_per_s": rate} for rate in rates]

    best = {"kproto": {"requests_per_s": 100.0}, "before": {"requests_per_s": 200.0}, "kfake": {"requests_per_s": 50.0}}
    row = Row(
        bench="commit", case="1x1", figures=best, rounds={"kproto": rounds(90, 30, 100), "before": rounds(100, 60, 200)}
    )
    assert row.lead("before", RATE) == 0.5, "of 0.9, 0.5 and 0.5"
    assert row.lead("kfake", RATE) == 2.0, "its best round counts"
    assert row.lead("before", TIME) is None


def test_the_best_rate_is_the_greatest_and_the_best_time_the_least() -> None:
    assert RATE.best([1.0, 3.0, 2.0]) == 3.0
    assert TIME.best([1.0, 3.0, 2.0]) == 1.0


def test_json_has_the_figures_by_subject_with_units_in_the_keys() -> None:
    assert json.loads(as_json(ROW)) == {
        "bench": "commit",
        "case": "1x1",
        "kproto": {"requests_per_s": 60000.0, "p50_us": 10.0},
        "kfake": {"requests_per_s": 20000.0, "p50_us": 25.0},
    }


def test_the_table_shows_each_figure_and_kprotos_lead_over_each_peer() -> None:
    assert as_table([ROW], METRICS).splitlines() == [
        "| case |        | requests/s | p50 us | kproto x: requests/s | kproto x: p50 us |",
        "| ---- | ------ | ---------- | ------ | -------------------- | ---------------- |",
        "| 1x1  | kproto |     60,000 |   10.0 |                      |                  |",
        "|      | kfake  |     20,000 |   25.0 |                 3.00 |             2.50 |",
    ]


def test_the_table_shows_a_dash_without_a_measurement_of_kproto() -> None:
    assert as_table([WITHOUT_KPROTO], METRICS).splitlines()[2].split("|")[-3:-1] == [
        "                    - ",
        "                - ",
    ]


def test_a_lead_is_held_missed_or_not_measured() -> None:
    def line(at_least: float, row: Row) -> str:
        (result,) = check_floors(
            [Lead(case="1x1", metric=RATE, peer="kfake", at_least=at_least)], [row], ["kproto", "kfake"]
        )
        return as_line(result)

    assert line(3.0, ROW) == "floor held: 1x1: requests/s at least 3 x as good as kfake (3.00 x)"
    assert line(3.1, ROW) == "floor MISSED: 1x1: requests/s at least 3.1 x as good as kfake (3.00 x)"
    assert line(1.0, WITHOUT_KPROTO) == (
        "floor NOT MEASURED: 1x1: requests/s at least 1 x as good as kfake (a figure is missing)"
    )


def test_a_limit_bounds_kprotos_figure_or_its_ratio_to_a_peer() -> None:
    names = ["kproto", "kfake"]
    floors = [
        Limit(case="1x1", metric=TIME, at_most=10.0),
        Limit(case="1x1", metric=TIME, at_most=9.9),
        Limit(case="1x1", metric=TIME, at_most=0.4, peer="kfake"),
        Limit(case="1x1", metric=TIME, at_most=0.3, peer="kfake"),
    ]
    assert [result.held for result in check_floors(floors, [ROW], names)] == [True, False, True, False]
    assert [result.held for result in check_floors(floors, [WITHOUT_KPROTO], names)] == [None] * 4


def test_a_kproto_with_more_to_do_is_near_or_not() -> None:
    floors = [Near(case="1x1", metric=RATE, peer="kfake", at_most=at_most) for at_most in (3.0, 2.9)]
    assert [as_line(result) for result in check_floors(floors, [ROW], ["kproto", "kfake"])] == [
        "floor held: 1x1: requests/s at most 3 x as good as kfake (3.00 x)",
        "floor MISSED: 1x1: requests/s at most 2.9 x as good as kfake (3.00 x)",
    ]
    assert [result.held for result in check_floors(floors, [WITHOUT_KPROTO], ["kproto", "kfake"])] == [None, None]


def test_only_floors_of_selected_cases_and_peers_are_checked() -> None:
    floors = [
        Lead(case="1x1", metric=RATE, peer="kfake", at_least=1.0),
        Lead(case="8x16", metric=RATE, peer="kfake", at_least=1.0),
        Lead(case="1x1", metric=RATE, peer="kafka", at_least=1.0),
    ]
    assert len(check_floors(floors, [ROW], ["kproto", "kfake"])) == 1
    assert len(check_floors(floors, [ROW], ["kproto", "kfake", "kafka"])) == 2
    assert check_floors(floors, [ROW], ["kfake"]) == []
