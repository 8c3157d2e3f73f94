"""A consumer's, producer's and admin's whole day with each client library: the table of clients and scenarios.

Method: each client has a driver that does what scenarios/README.md says and tells what it saw; here it runs with kproto
and with real Kafka, and what passes has to be what is recorded (`python -m tests.clients.table --write`). So the
table in the README is as true of both as this test is. What is not committed is nothing to every client (OF-50, OF-51):
`before` in `commit-with-metadata`; each finds what it needs first (BA-130 to BA-133).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.clients.conftest import TestedBroker
from tests.clients.results import (
    KPROTO,
    README,
    RESULTS,
    read_results,
    read_versions,
    whole_table,
    with_summary,
    worse_than_real,
)
from tests.clients.scenarios.clients import CLIENTS, Client
from tests.clients.scenarios.harness import run_client
from tests.clients.scenarios.scenarios import SCENARIOS
from tests.oracle.cluster import real_kafka

RealBroker = Callable[[str], str]


@pytest.fixture(scope="session")
def real_broker() -> Iterator[RealBroker]:
    """Gives the address of a real broker of a release, started when it is asked for first."""
    addresses: dict[str, str] = {}
    with ExitStack() as stack:

        def start(release: str) -> str:
            if release not in addresses:
                addresses[release] = stack.enter_context(real_kafka(release)).bootstrap
            return addresses[release]

        yield start


def clients(always: bool) -> list[object]:
    """Those that need more than Python, and all with a real broker, are marked."""
    return [pytest.param(c, id=c.name, marks=[pytest.mark.oracle] if always or c.needs_more else []) for c in CLIENTS]


def assert_as_recorded(client: Client, broker: str, bootstrap: str) -> None:
    found = run_client(client, bootstrap, f"of-{client.name}")
    verdicts = {name: outcome.verdict for name, outcome in found.items()}
    recorded = read_results()[client.name][broker]
    different = [f"{name}: {found[name]}" for name in recorded if recorded[name] != verdicts[name]]
    assert verdicts == recorded, "\n".join(different)


@pytest.mark.parametrize("client", clients(always=False))
def test_with_kproto(client: Client, broker: TestedBroker) -> None:
    assert_as_recorded(client, KPROTO, broker.bootstrap)


@pytest.mark.parametrize("client", clients(always=True))
def test_with_real_kafka(client: Client, real_broker: RealBroker) -> None:
    """The newest release that serves it; the table has another one."""
    release = client.real[-1]
    assert_as_recorded(client, release, real_broker(release))


def test_what_real_kafka_passes_kproto_passes() -> None:
    assert worse_than_real(read_results()) == []


def test_every_client_and_scenario_is_recorded() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    for client in CLIENTS:
        recorded = read_results()[client.name]
        assert list(recorded) == [KPROTO, *client.real]
        assert [list(row) for row in recorded.values()] == [names] * len(recorded)


def test_the_tables_are_those_of_what_is_recorded() -> None:
    results, versions = read_results(), read_versions()
    assert README.read_text() == with_summary(README.read_text(), results, versions)
    assert RESULTS.read_text() == whole_table(results, versions)
