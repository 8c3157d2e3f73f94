"""Run the scripts against real brokers, and write the transcripts to `fixtures/share-groups`.

    python -m tests.share_groups.record_transcripts 4.2.2 4.4.0 [--only sessions,locks_end] [--compare] [--seeds 30]

Prints the differences to kproto with --compare. With --seeds it runs and compares that many random scripts instead, of
which nothing is written.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kproto.records.partitioning import SHARE_STATE_TOPIC
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.testing.in_memory import virtual_clock
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import Transport, differences
from tests.membership.socket_transport import SocketTransport
from tests.oracle import launcher
from tests.share_groups import random_scripts
from tests.share_groups.scripts import LOCK_MS, Script
from tests.share_groups.sharers import Sharers
from tests.share_groups.transcripts import REAL_SETTINGS, SCRIPTS, Transcript, settings_with, transcripts, write

AT_ONCE = 4
"""Scripts at the same time; much of their time is waiting."""


def record(release: str, scripts: Mapping[str, Script], lock_ms: int = LOCK_MS) -> list[Transcript]:
    """Run scripts against a release; records are locked for ``lock_ms``."""
    with tempfile.TemporaryDirectory(prefix="share-", ignore_cleanup_errors=True) as folder:
        broker = launcher.start(release, folder=Path(folder), props=settings_with(lock_ms) | REAL_SETTINGS)
        try:
            warm = SocketTransport(broker.bootstrap)
            Sharers(warm, KafkaVersion.named(release), "warm").warm_up()
            warm.close()
            with ThreadPoolExecutor(AT_ONCE) as pool:
                runs = [pool.submit(_run_on_broker, broker.bootstrap, release, *one) for one in scripts.items()]
            return [one.result() for one in runs]
        finally:
            launcher.stop(Path(folder))


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


def run_on_kproto(release: str, name: str, script: Script, lock_ms: int = LOCK_MS) -> Transcript:
    """Run a script against kproto, in the Kafka version of the release."""
    state = new_state(release, settings=settings_with(lock_ms), clock=virtual_clock())
    state.cluster.ensure_internal_topic(SHARE_STATE_TOPIC, state.clock.now_ms())  # as the warm broker has it
    return run(InMemoryTransport(state), release, name, script)


def compare(found: Iterable[Transcript], scripts: Mapping[str, Script], lock_ms: int) -> int:
    """Print the differences to kproto; return how many transcripts differ."""
    different = 0
    for theirs in found:
        ours = run_on_kproto(theirs.release, theirs.script, scripts[theirs.script], lock_ms)
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
    arguments = parser.parse_args()
    scripts = {name: SCRIPTS[name] for name in arguments.only.split(",")}
    randoms = {f"seed-{seed}": random_scripts.random_script(seed) for seed in range(arguments.seeds)}
    kept = list(transcripts())
    for release in arguments.releases:
        if randoms:
            lock_ms = random_scripts.LOCK_MS
            different = compare(record(release, randoms, lock_ms), randoms, lock_ms)
            print(f"{release}: {len(randoms)} random scripts, {different} different from kproto")
            continue
        found = record(release, scripts)
        kept = [one for one in kept if one.release != release or one.script not in scripts] + found
        write(kept)
        different = compare(found, scripts, LOCK_MS) if arguments.compare else 0
        print(f"{release}: {len(found)} transcripts, {different} different from kproto")


if __name__ == "__main__":
    main()
