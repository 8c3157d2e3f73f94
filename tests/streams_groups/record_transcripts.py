"""Run the scripts against real brokers, and write the transcripts to `fixtures/streams-groups`.

    python -m tests.streams_groups.record_transcripts 4.2.2 4.4.0 [--only static_members] [--seeds 100]

Prints the differences to kproto. ``--seeds`` runs that many random scripts, of which nothing is written.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.testing.in_memory import virtual_clock
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import Transport, differences
from tests.membership.socket_transport import SocketTransport
from tests.oracle import launcher
from tests.streams_groups.members import Application
from tests.streams_groups.scripts import Script, random_script
from tests.streams_groups.transcripts import ALL_SCRIPTS, SETTINGS, SETTINGS_SINCE_4_3, TRANSCRIPTS
from tests.transcripts import Transcript

AT_ONCE = 4
HEARTBEAT = 88
RESPONSE_LIMIT_S = 10.0
"""Heartbeats of streams groups have a response at once, but the first assignment of a busy broker takes a second."""


def script_named(name: str) -> Script:
    """Return a script; ``seed-N`` is a random one."""
    return ALL_SCRIPTS[name] if name in ALL_SCRIPTS else random_script(int(name.removeprefix("seed-")))


def settings_of(release: str) -> dict[str, str]:
    return SETTINGS | (SETTINGS_SINCE_4_3 if KafkaVersion.named(release).at_least(4, 3) else {})


def run(transport: Transport, release: str, name: str, version: int) -> Transcript:
    """Run a script over a transport."""
    app = Application(transport, release, f"{name.replace('_', '-')}-{version}", version)
    script_named(name)(app)
    return Transcript(name, version, release, tuple(app.steps))


def record(release: str, names: Sequence[str]) -> list[Transcript]:
    """Run scripts against a release, in each version of the heartbeat."""
    _, newest = KafkaVersion.named(release).api_versions[HEARTBEAT]
    with tempfile.TemporaryDirectory(prefix="streams-", ignore_cleanup_errors=True) as folder:
        broker = launcher.start(release, folder=Path(folder), props=settings_of(release))
        try:
            warm = SocketTransport(broker.bootstrap)
            Application(warm, release, "warm", 0).create()
            warm.close()
            with ThreadPoolExecutor(AT_ONCE) as pool:
                runs = [
                    pool.submit(_run_on_broker, broker.bootstrap, release, name, version)
                    for version in range(newest + 1)
                    for name in names
                ]
            return [one.result() for one in runs]
        finally:
            launcher.stop(Path(folder))


def _run_on_broker(address: str, release: str, name: str, version: int) -> Transcript:
    transport = SocketTransport(address, RESPONSE_LIMIT_S)
    try:
        return run(transport, release, name, version)
    finally:
        transport.close()


def run_on_kproto(release: str, name: str, version: int) -> Transcript:
    """Run a script against kproto, in the Kafka version of the release."""
    state = new_state(release, settings=settings_of(release), clock=virtual_clock())
    return run(InMemoryTransport(state), release, name, version)


def try_random(releases: Sequence[str], count: int, start: int) -> None:
    """Run random scripts against real brokers, and print how kproto differs."""
    for release in releases:
        different = 0
        for theirs in record(release, [f"seed-{seed}" for seed in range(start, start + count)]):
            lines = differences(run_on_kproto(release, theirs.script, theirs.variant).steps, theirs.steps)
            different += bool(lines)
            if lines:
                print(f"{release} v{theirs.variant} {theirs.script}", *lines, sep="\n")
        print(f"{release}: {count} random scripts, {different} different from kproto")


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    arguments, _ = parser.parse_known_args()
    if arguments.seeds:
        try_random(arguments.releases, arguments.seeds, arguments.start)
    else:
        TRANSCRIPTS.record(__doc__, record, run_on_kproto)


if __name__ == "__main__":
    main()
