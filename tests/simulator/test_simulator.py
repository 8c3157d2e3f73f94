"""1,000 seeds without a violation; planted bugs are found within as many, and shrunk; a script has one history."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulator.bugs import BUGS
from tests.simulator.found import FOUND, NO_DEFECTS
from tests.simulator.generator import migrations_of, script_of
from tests.simulator.run import minimal, run, run_seed, shrink
from tests.simulator.script import Line, Script

SEED_COUNT = 1000
MIGRATIONS = 20
"""For each part."""
PARTS = 10
"""Tests that share the seeds, so that they run in parallel."""
LINES_MAX = 8
"""Lines of a script that was shrunk, at most."""

RULES = {
    "old-generation-commits": ("no commit of an old generation", "acknowledged offsets are kept"),
    "marker-lost-at-crash": ("transactions are atomic", "transactions end"),
    "assigned-before-revoked": ("no owner before a revocation",),
    "assigned-before-released": ("no owner before a revocation",),
    "task-given-before-released": ("no owner before a revocation",),
    "fenced-producer-appends": ("no writes after fencing",),
    "acquired-twice": ("one member has a record",),
}
"""The rules that each planted bug may break."""
FOUND_BY = {
    "old-generation-commits": 9,
    "marker-lost-at-crash": 35,
    "task-given-before-released": 78,
    "fenced-producer-appends": 15,
    "acquired-twice": 26,
}
"""Seeds that found the bug when they were written down; the test begins with them. All others follow if they no longer
do."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_seed_breaks_an_invariant(part: int) -> None:
    """`python -m tests.simulator --seeds 1 --from SEED --shrink` shows how a seed fails."""
    failed = {}
    for make, count in ((script_of, SEED_COUNT), (migrations_of, MIGRATIONS * PARTS)):
        for seed in range(part + 1, count + 1, PARTS):
            outcome = run_seed(seed, make)
            if outcome.violations:
                failed[make.__name__, seed] = outcome.violations
    assert not failed


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found_and_its_script_is_short(name: str) -> None:
    with BUGS[name]():
        first = FOUND_BY.get(name, 1)
        for seed in (*range(first, SEED_COUNT + 1), *range(1, first)):
            outcome = run_seed(seed)
            rule = next((one.rule for one in outcome.violations if one.rule in RULES[name]), None)
            if rule is not None:
                break
        else:
            pytest.fail(f"{SEED_COUNT} seeds do not find {name}")
        script = shrink(outcome.script, rule)
        assert len(script.lines) <= LINES_MAX
        again = run(Script.parse(str(script)))
        assert rule in {violation.rule for violation in again.violations}
    assert not run(script).violations, "without the bug, the same script is right"


@pytest.mark.parametrize("name", [*FOUND, *NO_DEFECTS])
def test_scripts_that_have_broken_rules_are_right_now(name: str) -> None:
    assert not run(Script.parse((FOUND | NO_DEFECTS)[name])).violations


def test_a_seed_has_one_history() -> None:
    for seed in range(1, 21):
        assert run_seed(seed).history.digest() == run_seed(seed).history.digest()


def test_histories_do_not_depend_on_the_order_of_hashes() -> None:
    program = (
        "from tests.simulator.run import run_seed\nfor seed in range(1, 16): print(run_seed(seed).history.digest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(found) == 1


def test_a_script_is_its_text() -> None:
    for seed in range(20):
        script = script_of(seed)
        assert Script.parse(f"# a comment\n{script}\n") == script


def test_minimal_leaves_out_all_that_is_not_needed() -> None:
    lines = [Line.of("line", number=number) for number in range(20)]
    needed = {lines[3], lines[4], lines[17]}
    assert minimal(lines, lambda rest: needed.issubset(rest)) == [lines[3], lines[4], lines[17]]


def test_invariants_know_no_broker() -> None:
    imported = {
        name
        for path in (Path(__file__).parent / "invariants").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    own = {name for name in imported if name.startswith(("kproto", "tests"))}
    assert own
    assert all(
        name.startswith(("kproto.", "tests.simulator.invariants")) or name == "tests.simulator.history" for name in own
    )
