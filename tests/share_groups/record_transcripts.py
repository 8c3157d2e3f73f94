"""Run the scripts against real brokers, and write the transcripts to `fixtures/share-groups`.

    python -m tests.share_groups.record_transcripts 4.2.2 4.4.0 [--only locks_end] [--compare] [--seeds 30] [--start 20]

Prints the differences to kproto with --compare. With --seeds it runs and compares that many random scripts instead, of
which nothing is written.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from kproto.codes import ErrorCode
from kproto.records.partitioning import SHARE_STATE_TOPIC
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.state import BrokerState
from kproto_server.testing.in_memory import virtual_clock
from tests.coordinator.broker_state import new_state
from tests.membership import random_runs
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import Step, Transport, differences
from tests.membership.socket_transport import SocketTransport
from tests.oracle import launcher
from tests.share_groups import random_scripts
from tests.share_groups.scripts import LOCK_MS, Script
from tests.share_groups.sharers import Sharers
from tests.share_groups.transcripts import REAL_SETTINGS, SCRIPTS, Transcript, settings_with, transcripts, write

AT_ONCE = 4
"""Scripts at the same time; much of their time is waiting."""


@contextmanager
def real_broker(release: str, lock_ms: int = LOCK_MS) -> Iterator[str]:
    """Run a real broker that has assigned partitions before, and yield its address; locks last ``lock_ms``."""
    with tempfile.TemporaryDirectory(prefix="share-", ignore_cleanup_errors=True) as folder:
        broker = launcher.start(release, folder=Path(folder), props=settings_with(lock_ms) | REAL_SETTINGS)
        try:
            warm = SocketTransport(broker.bootstrap)
            Sharers(warm, KafkaVersion.named(release), "warm").warm_up()
            warm.close()
            yield broker.bootstrap
        finally:
            launcher.stop(Path(folder))


def record(release: str, scripts: Mapping[str, Script]) -> list[Transcript]:
    """Run scripts against a release."""
    with real_broker(release) as address, ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [pool.submit(_run_on_broker, address, release, *one) for one in scripts.items()]
        return [one.result() for one in runs]


def try_random(release: str, seeds: Iterable[int]) -> int:
    """Run random scripts against a release and kproto, and print how they differ; return how many differ."""
    lock_ms = random_scripts.LOCK_MS
    runs: dict[str, random_runs.Run] = {
        f"seed {seed}": partial(_run_random, seed=seed, release=release) for seed in seeds
    }
    with real_broker(release, lock_ms) as address:
        return random_runs.compare(runs, address, lambda: new_kproto(release, lock_ms), _is_allowed)


def _is_allowed(ours: Step, theirs: Step) -> bool:
    """Return whether only a real broker returns records of a partition whose state is replaced (DEVIATIONS)."""
    return bool(_without_replaced(ours.responses) == _without_replaced(theirs.responses))


def _without_replaced(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_replaced(item) for item in value]
    if not isinstance(value, dict):
        return value
    is_replaced = value.get("acknowledge_error_code") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    left_out = ("records", "acquired_records") if is_replaced else ()
    return {name: _without_replaced(item) for name, item in value.items() if name not in left_out}


def _run_random(transport: Transport, *, seed: int, release: str) -> tuple[Step, ...]:
    return run(transport, release, f"seed-{seed}", random_scripts.random_script(seed)).steps


def run(transport: Transport, release: str, name: str, script: Script) -> Transcript:
    """Run a script over a transport."""
    sharers = Sharers(transport, KafkaVersion.named(release), name.replace("_", "-"))
    script(sharers)
    return Transcript(name, release, tuple(sharers.steps))


def _run_on_broker(address: str, release: str, name: str, script: Script) -> Transcript:
    transport = SocketTransport(address)
    try:
        return run(transport, release, name, script)
    finally:
        transport.close()


def new_kproto(release: str, lock_ms: int = LOCK_MS) -> BrokerState:
    """Return the state of a kproto broker, in the Kafka version of the release."""
    state = new_state(release, settings=settings_with(lock_ms), clock=virtual_clock())
    state.cluster.ensure_internal_topic(SHARE_STATE_TOPIC, state.clock.now_ms())  # as the warm broker has it
    return state


def run_on_kproto(release: str, name: str, script: Script) -> Transcript:
    """Run a script against kproto."""
    return run(InMemoryTransport(new_kproto(release)), release, name, script)


def compare(found: Iterable[Transcript], scripts: Mapping[str, Script]) -> int:
    """Print the differences to kproto; return how many transcripts differ."""
    different = 0
    for theirs in found:
        ours = run_on_kproto(theirs.release, theirs.script, scripts[theirs.script])
        lines = differences(ours.steps, theirs.steps)
        different += bool(lines)
        if lines:
            print(f"{theirs.release} {theirs.script}", *lines, sep="\n")
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--only", default=",".join(SCRIPTS))
    parser.add_argument("--compare", action="store_true", help="also run the scripts on kproto, and print differences")
    parser.add_argument("--seeds", type=int, default=0, help="compare random scripts instead")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    scripts = {name: SCRIPTS[name] for name in arguments.only.split(",")}
    kept = list(transcripts())
    for release in arguments.releases:
        if arguments.seeds:
            different = try_random(release, range(arguments.start, arguments.start + arguments.seeds))
            print(f"{release}: {arguments.seeds} random scripts, {different} different from kproto", flush=True)
            continue
        found = record(release, scripts)
        kept = [one for one in kept if one.release != release or one.script not in scripts] + found
        write(kept)
        different = compare(found, scripts) if arguments.compare else 0
        print(f"{release}: {len(found)} transcripts, {different} different from kproto")


if __name__ == "__main__":
    main()
