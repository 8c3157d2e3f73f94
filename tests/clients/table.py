"""The table of clients x scenarios: `python -m tests.clients.table [--write] [--client NAME]... [--broker NAME]...`.

Runs all clients, or the named ones, against kproto and real Kafka, and prints the results. With --write, the results
are recorded in fixtures/clients/results.json and their tables in tests/clients/RESULTS.md and the README.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kproto_server.broker.broker import Broker
from tests.clients.conftest import TIMEOUTS, kproto_serve, timeout_flags
from tests.clients.results import (
    KPROTO,
    SECURED_KPROTO,
    TITLES,
    Results,
    merged,
    read_results,
    read_versions,
    write_all,
)
from tests.clients.scenarios.clients import CLIENTS, Client
from tests.clients.scenarios.harness import Outcome, Secured, run_client
from tests.clients.scenarios.versions import version_of
from tests.oracle.cluster import real_kafka


@contextmanager
def started(broker: str) -> Iterator[str]:
    """Yield the address of kproto, or of a real broker of a release."""
    with ExitStack() as stack:
        if broker == KPROTO:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kproto-")))
            yield stack.enter_context(kproto_serve(folder / "kproto.log", *timeout_flags()))
        else:
            yield stack.enter_context(real_kafka(broker, props=TIMEOUTS)).bootstrap


SECURED_USER = {"alice": "alice-secret"}


@contextmanager
def secured_kproto(security: str) -> Iterator[tuple[str, Secured]]:
    """Yield the address of a listener without security, and a listener with TLS for clients of this security."""
    protocol = "SSL" if security == "SSL" else "SASL_SSL"
    with Broker.running(
        tls="auto",
        sasl=() if security == "SSL" else security,
        users={} if security == "SSL" else SECURED_USER,
        listeners=[f"{protocol}://127.0.0.1:0", "PLAINTEXT://127.0.0.1:0"],
        settings=TIMEOUTS,
    ) as broker:
        yield broker.servers_of("PLAINTEXT"), Secured(broker.servers_of(protocol), broker.client_variables)


def run_secured(client: Client) -> dict[str, Outcome]:
    """Run all scenarios of a client against kproto over SASL_SSL, or SSL if the client has no SASL."""
    with secured_kproto(client.security) as (bootstrap, secured):
        return run_client(client, bootstrap, f"table-{client.name}", secured)


def run_all(clients: list[Client], brokers: list[str]) -> Results:
    results: Results = {client.name: {} for client in clients}
    for broker in brokers:
        served = [client for client in clients if broker in (KPROTO, SECURED_KPROTO, *client.real)]
        with ExitStack() as stack:
            bootstrap = None if broker == SECURED_KPROTO else stack.enter_context(started(broker))
            for client in served:
                before = time.monotonic()
                if bootstrap is None:
                    outcomes = run_secured(client)
                else:
                    outcomes = run_client(client, bootstrap, f"table-{client.name}")
                _show(client, broker, outcomes, time.monotonic() - before)
                results[client.name][broker] = {name: found.status for name, found in outcomes.items()}
    return results


def _show(client: Client, broker: str, outcomes: dict[str, Outcome], seconds: float) -> None:
    statuses = [found.status for found in outcomes.values()]
    counts = ", ".join(f"{statuses.count(v)} {v}" for v in ("passed", "failed", "unsupported") if v in statuses)
    print(f"{client.name} with {broker}: {counts} ({seconds:.1f} s)", flush=True)
    for name, found in outcomes.items():
        if found.status == "failed":
            print(f"    {name}: {found.reason}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.table", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record the results")
    parser.add_argument("--client", action="append", choices=[client.name for client in CLIENTS])
    parser.add_argument("--broker", action="append", choices=TITLES)
    options = parser.parse_args()
    clients = [client for client in CLIENTS if not options.client or client.name in options.client]
    results = run_all(clients, options.broker or list(TITLES))
    if options.write:
        versions = read_versions() | {client.name: version_of(client.name) for client in clients}
        write_all(merged(read_results(), results), versions)
    return int(any("failed" in row.values() for found in results.values() for row in found.values()))


if __name__ == "__main__":
    sys.exit(main())
