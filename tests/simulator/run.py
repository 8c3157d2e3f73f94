"""Runs a script and checks its history; makes a script that fails as short as possible."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, NamedTuple

from tests.simulator.generator import script_of
from tests.simulator.invariants import Violation, violations
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.history import History
    from tests.simulator.script import Line, Script


class Outcome(NamedTuple):
    """What became of a script."""

    script: Script
    history: History
    violations: list[Violation]


def run(script: Script) -> Outcome:
    """Run a script and check its history."""
    simulation = Simulation(script)
    try:
        history = simulation.run()
    except Exception:  # noqa: BLE001 - an exception of the broker outside of a connection would end its process
        history = simulation.history
        simulation.note("exception", traceback.format_exc())
    return Outcome(script, history, violations(history))


def run_seed(seed: int, make: Callable[[int], Script] = script_of) -> Outcome:
    """Run the script of a seed."""
    return run(make(seed))


def shrink(script: Script, rule: str) -> Script:
    """Return a script with as few lines as possible that breaks the same rule."""

    def fails(lines: list[Line]) -> bool:
        return any(one.rule == rule for one in run(script.with_lines(lines)).violations)

    return script.with_lines(minimal(list(script.lines), fails))


def minimal(lines: list[Line], fails: Callable[[list[Line]], bool]) -> list[Line]:
    """Return lines of which none can be left out (Zeller's ddmin).

    Halves are left out first, then ever smaller parts.
    """
    parts = 2
    while lines:
        size = max(1, len(lines) // parts)
        for start in range(0, len(lines), size):
            rest = lines[:start] + lines[start + size :]
            if fails(rest):
                lines, parts = rest, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts *= 2
    return lines
