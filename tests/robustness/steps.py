"""Counts the steps that Python takes: a measure of cost that is the same in each run and on each machine.

A step is a line that runs, each time that it runs, in a loop or a comprehension. Searches that run in C, such as
``list.count`` or ``in`` a list, take no lines; so `counted` replaces values by ones that compare themselves in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class _CountedInt(int):
    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other)

    __hash__ = int.__hash__


class _CountedStr(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def counted(value: Any) -> Any:
    """Return a copy of a request, whose numbers and strings take a step for each comparison."""
    if isinstance(value, tuple):
        return tuple.__new__(type(value), [counted(item) for item in value])
    if type(value) is int:
        return _CountedInt(value)
    return _CountedStr(value) if type(value) is str else value


def count_steps(call: Callable[[], object]) -> int:
    """Call a function and return the number of its steps."""
    steps = 0

    def traced(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += 1
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps


class CountedId(bytes):
    """A topic id whose comparisons are steps; those of `bytes` are none."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return bytes.__eq__(self, other)

    def __hash__(self) -> int:
        return bytes.__hash__(self)


SIZES = (20, 40, 80)
GROWTH_MAX = 2.5
"""Twice the elements take twice the steps, or a little more if they are sorted; four times if the cost is quadratic."""


STEPS_MIN = 4
"""Steps of an element that count in any case: fewer are noise."""


def growth(steps_of_size: Callable[[int], int]) -> float:
    """Return by which factor steps grow when a size is doubled, whatever the steps that every size takes."""
    small, middle, large = map(steps_of_size, SIZES)
    return (large - middle) / max(middle - small, STEPS_MIN * (SIZES[1] - SIZES[0]))
