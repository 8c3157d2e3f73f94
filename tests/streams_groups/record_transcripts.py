"""Run the scripts against real brokers, and write the transcripts to `fixtures/streams-groups`.

    python -m tests.streams_groups.record_transcripts 4.2.2 4.4.0 [--only static_members] [--seeds 100] [--start 20]

Prints the differences to kproto. ``--seeds`` runs that many random scripts, of which nothing is written.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from kproto_server.coordinator.groups import GroupState
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.testing.in_memory import virtual_clock
from tests.coordinator.broker_state import new_state
from tests.membership import random_runs
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import Step, Transport
from tests.membership.socket_transport import RESPONSE_LIMIT_S, SocketTransport
from tests.oracle import launcher
from tests.streams_groups.members import Application
from tests.streams_groups.scripts import LONG_MS, Script, random_script
from tests.streams_groups.transcripts import ALL_SCRIPTS, SETTINGS, SETTINGS_SINCE_4_3, TRANSCRIPTS
from tests.transcripts import Transcript

AT_ONCE = 4
HEARTBEAT = 88


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


@contextmanager
def real_broker(release: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Run a real broker that has a coordinator, and yield its address."""
    with tempfile.TemporaryDirectory(prefix="streams-", ignore_cleanup_errors=True) as folder:
        broker = launcher.start(release, folder=Path(folder), props=settings)
        try:
            warm = SocketTransport(broker.bootstrap)
            Application(warm, release, "warm", 0).create()
            warm.close()
            yield broker.bootstrap
        finally:
            launcher.stop(Path(folder))


def versions_of(release: str) -> range:
    """Return the versions of the heartbeat."""
    _, newest = KafkaVersion.named(release).api_versions[HEARTBEAT]
    return range(newest + 1)


def record(release: str, names: Sequence[str]) -> list[Transcript]:
    """Run scripts against a release, in each version of the heartbeat."""
    todo = [(name, version) for version in versions_of(release) for name in names]
    with real_broker(release, settings_of(release)) as address, ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda what: _run_on_broker(address, release, *what), todo))


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


def try_random(release: str, seeds: Iterable[int]) -> int:
    """Run random scripts against a release and kproto, and print how they differ; return how many differ."""
    runs: dict[str, random_runs.Run] = {
        f"seed {seed}, v{version}": partial(_run_random, seed=seed, release=release, version=version)
        for version in versions_of(release)
        for seed in seeds
    }
    settings = settings_of(release) | {"group.streams.session.timeout.ms": str(LONG_MS)}
    with real_broker(release, settings) as address:
        return random_runs.compare(runs, address, lambda: new_state(release, settings=settings, clock=virtual_clock()))


def _run_random(transport: Transport, *, seed: int, release: str, version: int) -> tuple[Step, ...]:
    steps = run(transport, release, f"seed-{seed}", version).steps
    return tuple([Step(step.action, _without_early_counts(step.responses)) for step in steps])


def _without_early_counts(value: Any) -> Any:
    """Leave out topologies whose partition counts a real broker describes later (DEVIATIONS)."""
    if isinstance(value, list):
        return [_without_early_counts(item) for item in value]
    if not isinstance(value, dict):
        return value
    left_out = ("topology",) if value.get("group_state") == GroupState.ASSIGNING.value else ()
    return {name: _without_early_counts(item) for name, item in value.items() if name not in left_out}


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    arguments, _ = parser.parse_known_args()
    if arguments.seeds:
        for release in arguments.releases:
            different = try_random(release, range(arguments.start, arguments.start + arguments.seeds))
            print(
                f"{release}: {arguments.seeds} random scripts, {different} transcripts different from kproto",
                flush=True,
            )
    else:
        TRANSCRIPTS.record(__doc__, record, run_on_kproto)


if __name__ == "__main__":
    main()
