"""``python -m tests.mutation.session``: run each mutant in a forked child of one pytest session.

Theory of operation. pytest collects the tests once. Each test runs once without a mutant, which shows how long it takes
and which functions it reaches. A mutant then costs no start of pytest: a child calls it in place of the original and
runs the tests that reach it, until one fails. Tests that detected a mutant of the same function or module run first,
then the quickest. A child that takes far longer than its tests took without a mutant is stopped: the mutant is detected
by the time it takes. Each result is kept in the directory, so a run that is stopped goes on where it was.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
from argparse import ArgumentParser
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from tests.mutation import trampoline
from tests.mutation.results import Mutants, read_results

if TYPE_CHECKING:
    from collections.abc import Iterable

RESULTS, TESTS, MUTANTS = Path("results.txt"), Path("tests.json"), Path("mutants.json")

DESELECTED = ("--deselect=tests/codec/test_raises.py::test_every_documented_exception_has_a_case",)
"""This test compares names of functions, and mutmut renames them."""

EXAMPLES_MAX = 12
"""How many examples of a property each mutant gets, whatever its test asks for."""

LONGEST_TEST_S, LONGEST_MUTANT_S = 3.0, 3.0
"""Tests that take longer are left out; as are the last ones, if a mutant's tests take longer together."""


class Measured(NamedTuple):
    """One run of a test without a mutant."""

    seconds: float
    passed: bool
    functions: list[str]
    """The mutated functions that it called."""


class MutationSession:
    """A pytest plugin that runs the collected tests for one mutant after the other, in place of once."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.results = read_results(RESULTS)
        self.detections: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """How many mutants of a function, or of a module, each test has detected."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert not session.testsfailed, "the tests cannot be collected"
        marks = ("oracle", "spark", "slow")
        items = [item for item in session.items if not any(map(item.get_closest_marker, marks))]
        _limit_examples(items)
        measured = _measure(items)
        quick = {item.nodeid: item for item in items if _is_usable(measured[item.nodeid])}
        reaching: defaultdict[str, list[str]] = defaultdict(list)
        for test in quick:
            for reached in measured[test].functions:
                reaching[reached].append(test)
        gc.collect()
        gc.freeze()  # a child's collections do not copy the parent's pages
        mutants: Mutants = json.loads(MUTANTS.read_text())
        wanted = [f"{module}.{name}" for module, names in mutants.items() for name in names]
        wanted.sort(key=lambda mutant: crc32(mutant.encode()))  # however far a run gets, it is a sample of all modules
        functions = {
            f"{function.partition(':')[0]}.{name}": function
            for function, (_, of_function) in trampoline.functions.items()
            for name in of_function
        }
        for mutant in wanted:
            if mutant in self.results:
                continue
            if time.monotonic() > self.deadline:
                break
            function = functions.get(mutant)
            tests = [] if function is None else reaching[function]
            result = "no tests"
            if function is not None and tests:
                chosen = self._choose(function, tests, measured)
                result = self._run(mutant, function, [quick[test] for test in chosen], measured)
            with RESULTS.open("a") as file:
                file.write(f"{mutant} {result}\n")
        return True

    def _choose(self, function: str, tests: list[str], measured: dict[str, Measured]) -> list[str]:
        """Return the tests to run for a mutant, the most promising first."""
        of_function, of_module = self.detections[function], self.detections[function.partition(":")[0]]
        tests = sorted(tests, key=lambda test: (-of_function[test], -of_module[test], measured[test].seconds))
        chosen: list[str] = []
        seconds = 0.0
        for test in tests:
            if not chosen or seconds + measured[test].seconds <= LONGEST_MUTANT_S:
                chosen.append(test)
                seconds += measured[test].seconds
        return chosen

    def _run(self, mutant: str, function: str, items: list[pytest.Item], measured: dict[str, Measured]) -> str:
        """Run the tests for a mutant; return what became of it."""
        seconds = sum(measured[item.nodeid].seconds for item in items)
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(read)
            _be_the_mutant(mutant, function, items, 2 + 4 * seconds, write)
        os.close(write)
        stop_at = time.monotonic() + 10 + 12 * seconds
        done, status = os.waitpid(pid, os.WNOHANG)
        while not done:
            if time.monotonic() > stop_at:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
            done, status = os.waitpid(pid, os.WNOHANG)
        with os.fdopen(read) as pipe:
            detected_by = pipe.read()
        if detected_by:
            for where in (function, function.partition(":")[0]):
                self.detections[where][detected_by] += 1
            return "killed"
        code = os.waitstatus_to_exitcode(status)
        return {0: "survived", 1: "killed"}.get(code, "timeout")


def _be_the_mutant(mutant: str, function: str, items: list[pytest.Item], cpu_seconds: float, write: int) -> None:
    """Run tests with a mutant in this process, and end the process; write the test that fails."""
    try:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        for descriptor in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        chosen, _ = trampoline.functions[function]
        chosen[0] = mutant.rpartition(".")[2]
        for item, following in zip(items, [*items[1:], None], strict=True):
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
                os.write(write, item.nodeid.encode())
                os._exit(1)
        os._exit(0)
    finally:
        os._exit(1)  # nothing of a child returns to the parent's session


def _is_usable(test: Measured) -> bool:
    return test.passed and test.seconds <= LONGEST_TEST_S


def _limit_examples(items: Iterable[pytest.Item]) -> None:
    """Have properties make few examples, and not look for a simpler one that fails."""
    for item in items:
        function = getattr(item, "function", None)
        for holder, name in ((function, "_hypothesis_internal_use_settings"), (getattr(item, "cls", None), "settings")):
            own = getattr(holder, name, None)
            if isinstance(own, settings):
                few = min(own.max_examples, EXAMPLES_MAX)
                setattr(holder, name, settings(own, max_examples=few, phases=[Phase.explicit, Phase.generate]))


def _measure(items: list[pytest.Item]) -> dict[str, Measured]:
    """Run each test once. A run that goes on takes the times of before."""
    known = json.loads(TESTS.read_text()) if TESTS.exists() else {}
    measured = {test: Measured(*values) for test, values in known.items()}
    new = [item for item in items if item.nodeid not in measured]
    for item, following in zip(new, [*new[1:], None], strict=True):
        trampoline.called.clear()
        start = time.process_time()
        reports = runtestprotocol(item, log=False, nextitem=following)
        seconds = time.process_time() - start
        passed = all(report.passed for report in reports)
        if any(report.failed for report in reports):
            print("fails without a mutant, so left out:", item.nodeid)
        measured[item.nodeid] = Measured(round(seconds, 4), passed, sorted(trampoline.called))
    TESTS.write_text(json.dumps(measured))
    return measured


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.mutation.session")
    parser.add_argument("minutes", type=float)
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    session = MutationSession(time.monotonic() + 60 * options.minutes)
    flags = ["-q", "--import-mode=prepend", "--rootdir=.", "--tb=native", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return int(pytest.main([*flags, *DESELECTED, *options.tests], plugins=[session]))


if __name__ == "__main__":
    sys.exit(main())
