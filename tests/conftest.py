"""How tests are spread over processes, and how many examples Hypothesis makes.

The environment variable KPROTO_HYPOTHESIS chooses one. The default, ``derandomized``, runs the same examples each
time. ``exhaustive`` runs many new ones. ``few`` runs a handful: enough to detect mutants, where each test
runs many times.

KPROTO_COVERAGE measures branch coverage (`tests.branch_coverage`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import collecting

settings.register_profile(
    "derandomized",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "exhaustive", settings.get_profile("derandomized"), derandomize=False, max_examples=5000, print_blob=True
)
settings.register_profile("few", settings.get_profile("derandomized"), max_examples=16)
settings.load_profile(os.environ.get("KPROTO_HYPOTHESIS", "derandomized"))


def pytest_configure(config: pytest.Config) -> None:
    """Collect by `tests.collecting`, and measure the processes that run tests: not the one that distributes them."""
    config.pluginmanager.register(collecting)
    if "KPROTO_COVERAGE" in os.environ and (
        hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    ):
        from tests.branch_coverage import BranchCoverage

        config.pluginmanager.register(BranchCoverage())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with Spark: its tests take longest, and in one process after the other they do not slow each other so much
    that Spark gives up its workers.

    Its tests that start processes of their own come last: other processes that run tests take them from the end, and
    need no Spark session for them.
    """
    items.sort(key=_order)


def _order(item: pytest.Item) -> int:
    if "spark" not in item.path.parts:
        return 2
    fixtures: tuple[str, ...] = getattr(item, "fixturenames", ())
    return 1 if item.get_closest_marker("slow") is not None and "spark" not in fixtures else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Have each test begin with the logger as it was: commands that a test runs in this process configure it."""
    log = logging.getLogger("kproto")
    handlers, level, propagate = list(log.handlers), log.level, log.propagate
    try:
        return (yield)
    finally:
        log.handlers[:], log.propagate = handlers, propagate
        log.setLevel(level)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have a process that is done take tests from another: tests take between a millisecond and two minutes, and the
    longest are next to each other."""
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]

    return WorkStealingScheduling(config, log)
