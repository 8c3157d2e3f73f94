"""The scenarios of consumers, producers and admin clients with each client library.

Method: each client has a driver that runs the scenarios of scenarios/README.md and reports the results. The tests run
the drivers with kproto and with real Kafka, and compare the outcomes with the recorded ones (`python -m
tests.clients.table --write`), which are also the tables of the README. Each client returns no offset for a partition
without a committed offset (OF-50, OF-51; `before` in `commit-with-metadata`), and finds coordinators and leaders first
(BA-130 to BA-133).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.clients.conftest import TIMEOUTS, TestedBroker
from tests.clients.results import (
    KPROTO,
    README,
    RESULTS,
    SECURED_KPROTO,
    read_results,
    read_versions,
    whole_table,
    with_summary,
    worse_than_real,
)
from tests.clients.scenarios.clients import CLIENTS, Client
from tests.clients.scenarios.harness import run_client
from tests.clients.scenarios.scenarios import SCENARIOS
from tests.clients.table import run_secured
from tests.oracle.cluster import real_kafka

RealBroker = Callable[[str], str]


@pytest.fixture(scope="session")
def real_broker() -> Iterator[RealBroker]:
    """Return a function that starts a real broker of a release once, and returns its address."""
    addresses: dict[str, str] = {}
    with ExitStack() as stack:

        def start(release: str) -> str:
            if release not in addresses:
                addresses[release] = stack.enter_context(real_kafka(release, props=TIMEOUTS)).bootstrap
            return addresses[release]

        yield start


def clients(always: bool) -> list[object]:
    """Return the clients; mark those that need a runtime other than Python, or all (`always`)."""
    return [
        pytest.param(c, id=c.name, marks=[pytest.mark.oracle] if always or c.needs_runtime else []) for c in CLIENTS
    ]


def assert_recorded(client: Client, broker: str, bootstrap: str) -> None:
    found = run_client(client, bootstrap, f"of-{client.name}")
    statuses = {name: outcome.status for name, outcome in found.items()}
    recorded = read_results()[client.name][broker]
    different = [f"{name}: {found[name]}" for name in recorded if recorded[name] != statuses[name]]
    assert statuses == recorded, "\n".join(different)


@pytest.mark.parametrize("client", clients(always=False))
def test_with_kproto(client: Client, broker: TestedBroker) -> None:
    assert_recorded(client, KPROTO, broker.bootstrap)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["confluent-kafka", "sarama"])
def test_with_kproto_over_sasl_ssl(name: str) -> None:
    """A library in Python and one in Go; `python -m tests.clients.table` runs all."""
    client = next(one for one in CLIENTS if one.name == name)
    found = run_secured(client)
    statuses = {name: outcome.status for name, outcome in found.items()}
    assert statuses == read_results()[client.name][SECURED_KPROTO], found


@pytest.mark.parametrize("client", clients(always=True))
def test_with_real_kafka(client: Client, real_broker: RealBroker) -> None:
    """The newest release that serves the client; the table has an older one too."""
    release = client.real[-1]
    assert_recorded(client, release, real_broker(release))


def test_kproto_passes_all_scenarios_that_real_kafka_passes() -> None:
    assert worse_than_real(read_results()) == []


def test_every_client_and_scenario_is_recorded() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    for client in CLIENTS:
        recorded = read_results()[client.name]
        assert list(recorded) == [KPROTO, SECURED_KPROTO, *client.real]
        assert [list(row) for row in recorded.values()] == [names] * len(recorded)


def test_the_tables_have_the_recorded_results() -> None:
    results, versions = read_results(), read_versions()
    assert README.read_text() == with_summary(README.read_text(), results, versions)
    assert RESULTS.read_text() == whole_table(results, versions)
