"""The session reports which mutants a test detects, which survive, which no test reaches, and which do not end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.mutation.results import read_results

ROOT = Path(__file__).parents[2]

SMALL = """
from tests.mutation.trampoline import wrap_in_trampoline, MutantDict

mutants_of_sign: MutantDict = {}
mutants_of_unused: MutantDict = {}


@wrap_in_trampoline(mutants_of_sign)
def sign(number): ...


def orig(number):
    while number > 1:
        number -= 1
    return number


mutants_of_sign["_mutmut_orig"] = orig
mutants_of_sign["killed"] = lambda number: -orig(number)
mutants_of_sign["survived"] = lambda number: orig(number) if number < 3 else 0


def endless(number):
    while number > 1:
        pass
    return number


mutants_of_sign["endless"] = endless


@wrap_in_trampoline(mutants_of_unused)
def unused(): ...


mutants_of_unused["_mutmut_orig"] = mutants_of_unused["unreached"] = lambda: None
"""

TESTS = """
import small


def test_one():
    assert small.sign(1) == 1


def test_two():
    assert small.sign(2) == 1
"""


def test_each_mutant_has_a_result(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(SMALL)
    (tmp_path / "test_small.py").write_text(TESTS)
    (tmp_path / "mutants.json").write_text(json.dumps({"small": ["killed", "survived", "endless", "unreached"]}))
    session = [sys.executable, "-m", "tests.mutation.session", "60", "test_small.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(session, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    results = read_results(tmp_path / "results.txt")
    expected = {"killed": "killed", "survived": "survived", "endless": "timeout", "unreached": "no tests"}
    assert results == {f"small.{name}": result for name, result in expected.items()}
