"""Branch coverage of protocol, coordinator, storage and network, measured while the whole suite runs.

Measuring multiplies the CPU time of a test by two to four, and most of the suite's time goes into tests that reach the
measured code in other processes, or reach nothing that others do not. So only the tests that `is_measured` accepts are
measured, some cases of a test with many, and the import of all modules, but not the collection of tests. The
environment variable KPROTO_COVERAGE switches it on; each process of pytest then writes a data file of its own, for
``coverage combine``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import coverage
import pytest

import kproto
import kproto_server

TESTS = Path(__file__).parent
MEASURED = {
    "arrow",
    "broker",
    "cluster",
    "codec",
    "commit_cache",
    "configuration",
    "connection",
    "consumer_groups",
    "control",
    "coordinator",
    "faults",
    "features",
    "membership",
    "network",
    "observation",
    "partition_log",
    "persistence",
    "records",
    "report",
    "requests",
    "seed",
    "server",
    "share_groups",
    "snapshots",
    "storage",
    "stores",
    "streams_groups",
    "telemetry",
    "testing",
    "throttling",
    "transactions",
    "test_clock.py",
    # decisions of the client, without librdkafka
    "kproto_client/test_assignment.py",
    "kproto_client/test_catch_up.py",
    "kproto_client/test_catch_up_batches.py",
    "kproto_client/test_consumer2_resets.py",
    "kproto_client/test_key_scan.py",
    "kproto_client/test_reset_decisions.py",
    "kproto_client/test_rules.py",
    "kproto_client/test_settings.py",
}
"""Folders of `tests`, and files."""

UNMEASURED = (
    # compare two implementations of one thing, value by value
    "*_agree.py",
    "*_agrees.py",
    "*_equals_interpreted.py",
    "*_equal_reference.py",
    "test_hostile_frames.py",
    # run programs in other processes
    "test_kafka_directories.py",
    "test_kafka_reads_*.py",
    "test_html_page.py",
    "test_page.py",
    "test_examples.py",
    "test_commands.py",
    "test_kip115.py",
    # repeat the same requests many times, with crashes or other orders
    "test_crash*.py",
    "test_table.py",
    "test_expiration_restarts.py",
    "test_acknowledged.py",
    "test_connection_state.py",
    "test_plain_batches.py",
    "test_confluent.py",
    # repeat for many messages, releases, groups and logs what other tests do with few
    "test_advance.py",
    "test_commit_cache.py",
    "test_committed_consumers.py",
    "test_declarations.py",
    "test_element_limit*.py",
    "test_expiration_records.py",
    "test_expiration_timelines.py",
    "test_one_packet.py",
    "test_record_layout.py",
    "test_stored_data.py",
    "coordinator/test_expiration.py",
    "membership/test_recorded_transcripts.py",
    "storage/test_compaction.py",
    # measure memory or steps, or do with many or large elements what others do with few
    "test_growth.py",
    "test_large_responses.py",
    "test_in_memory.py",
    "test_framing.py",
    "test_record_budget.py",
    "test_connection_limits.py",
    "test_offset_commit_v4.py",
    # compare with other libraries or recorded bytes
    "test_peers.py",
    "test_golden_logs.py",
    "test_client_connection.py",
)
"""Names of files in these folders whose tests reach nothing that other tests do not."""


CASES_MAX = 24
"""The cases of one test that are measured: evenly spread ones, as the others do the same with other messages, releases
or settings."""


def measured_cases(items: list[pytest.Item]) -> set[str]:
    """Return the ids of the tests that are measured."""
    tests: dict[str, list[str]] = {}
    for item in filter(is_measured, items):
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item.nodeid)
    return {case for cases in tests.values() for case in cases[:: -(-len(cases) // CASES_MAX)]}


def is_measured(item: pytest.Item) -> bool:
    """Say whether the cases of a test are measured."""
    parts = item.path.relative_to(TESTS).parts
    marked = any(item.get_closest_marker(name) for name in ("oracle", "slow"))
    is_named = parts[0] in MEASURED or "/".join(parts) in MEASURED
    return is_named and not marked and not any(item.path.match(pattern) for pattern in UNMEASURED)


def _import_all() -> None:
    """Import the measured modules: what runs in them then is executed once, before anything of a test."""
    omitted = coverage.Coverage().get_option("run:omit")
    assert isinstance(omitted, list)
    for package in (kproto, kproto_server):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            path = f"/{module.name.replace('.', '/')}.py"
            if not any(fnmatch(path, str(pattern)) for pattern in omitted) and not path.endswith("/__main__.py"):
                importlib.import_module(module.name)


class BranchCoverage:
    """A plugin of pytest that measures the tests of one process."""

    def __init__(self) -> None:
        self._measurement = coverage.Coverage(data_suffix=True)
        self._is_on = False
        self._cases: set[str] = set()
        self._switch(on=True)
        _import_all()
        self._switch(on=False)

    def _switch(self, *, on: bool) -> None:
        if on and not self._is_on:
            self._measurement.start()
        elif self._is_on and not on:
            self._measurement.stop()
        self._is_on = on

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._cases = measured_cases(session.items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._switch(on=item.nodeid in self._cases)
        return (yield)

    def pytest_unconfigure(self) -> None:
        self._switch(on=False)
        self._measurement.save()
