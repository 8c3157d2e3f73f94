"""Run the scripts against real brokers, and write the transcripts to `fixtures/consumer_groups`.

    python -m tests.consumer_groups.record_transcripts 4.0.2 4.4.0 [--only two_members] [--seeds 100 --start 37 --mixed]

Prints the differences to kproto. ``--seeds`` compares that many random scripts instead, of which nothing is written;
``--mixed`` and ``--crowds`` have more kinds of requests.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kproto.codes import ErrorCode
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from kproto.records.partitioning import TRANSACTION_TOPIC
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.state import BrokerState
from kproto_server.testing.in_memory import virtual_clock
from tests.consumer_groups.crowds import Crowd, Ids
from tests.consumer_groups.members import Conversation
from tests.consumer_groups.scripts import SCRIPTS, Script, mixed_script, random_script
from tests.consumer_groups.transcripts import (
    MIXED_SETTINGS,
    MIXED_SETTINGS_SINCE_4_3,
    SETTINGS,
    TOPICS,
    Transcript,
    runs_on,
    topic_ids_by_release,
    transcripts,
    write,
)
from tests.coordinator.broker_state import new_state
from tests.membership import random_runs
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import Step, Transport, differences
from tests.membership.socket_transport import SocketTransport
from tests.oracle import launcher
from tests.waiting import wait_until

AT_ONCE = 4


def run(script: Script, transport: Transport, group_id: str, release: str) -> tuple[Step, ...]:
    """Run a script, and return the transcript."""
    group = Conversation(transport, group_id, release=release)
    group.learn_topics(*TOPICS)
    script(group)
    return tuple(group.steps)


def new_kproto(release: str, topic_ids: Mapping[str, str], settings: Mapping[str, str] = SETTINGS) -> BrokerState:
    """Return the state of a kproto broker, in the Kafka version of the release, with the topic ids of a real broker."""
    state = new_state(release, topics={"unused": 1}, settings=settings, clock=virtual_clock())
    for name, partition_count in TOPICS.items():
        topic_id = bytes.fromhex(topic_ids[name])
        state.cluster.restore_topic(name, topic_id, partition_count, [[1]] * partition_count, {})
    return state


def run_on_kproto(release: str, script: Script, topic_ids: Mapping[str, str]) -> tuple[Step, ...]:
    """Run a script against kproto."""
    return run(script, InMemoryTransport(new_kproto(release, topic_ids)), "group-of-kproto", release)


def run_on_broker(address: str, release: str, script: Script, name: str) -> tuple[Step, ...]:
    transport = SocketTransport(address)
    try:
        return run(script, transport, f"group-{name}", release)
    finally:
        transport.close()


@contextmanager
def real_broker(release: str, settings: Mapping[str, str] = SETTINGS) -> Iterator[tuple[str, dict[str, str]]]:
    """Run a real broker that is ready for the scripts; yield its address, and the topic ids."""
    with tempfile.TemporaryDirectory(prefix="consumer-groups-", ignore_cleanup_errors=True) as folder:
        broker = launcher.start(release, folder=Path(folder), props=settings)
        try:
            yield broker.bootstrap, make_ready(broker.bootstrap)
        finally:
            launcher.stop(Path(folder))


def record(release: str, scripts: dict[str, Script]) -> tuple[list[Transcript], dict[str, str]]:
    """Run scripts against a release; return the transcripts, and the topic ids."""
    with real_broker(release) as (address, topic_ids), ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {name: pool.submit(run_on_broker, address, release, one, name) for name, one in scripts.items()}
        return [Transcript(name, release, one.result()) for name, one in runs.items()], topic_ids


def try_random(release: str, seeds: Iterable[int], *, mixed: bool) -> int:
    """Run random scripts against a release and kproto, and print how they differ; return how many differ."""
    make = mixed_script if mixed else random_script
    settings = SETTINGS | (MIXED_SETTINGS if mixed else {})
    if mixed and KafkaVersion.named(release).at_least(4, 3):
        settings |= MIXED_SETTINGS_SINCE_4_3
    with real_broker(release, settings) as (address, topic_ids):
        runs: dict[str, random_runs.Run] = {
            f"seed {seed}": partial(_run_random, script=make(seed), name=f"group-{seed}", release=release)
            for seed in seeds
        }
        return random_runs.compare(runs, address, lambda: new_kproto(release, topic_ids, settings))


def try_crowds(release: str, seeds: Iterable[int]) -> int:
    """Run scripts of crowds against a release and kproto, and print how they differ; return how many differ."""
    with real_broker(release) as (address, topic_ids):
        runs: dict[str, random_runs.Run] = {
            f"seed {seed}": partial(_run_crowd, seed=seed, release=release, ids=Ids.unknown()) for seed in seeds
        }
        return random_runs.compare(runs, address, lambda: _new_kproto_with_transactions(release, topic_ids))


def _new_kproto_with_transactions(release: str, topic_ids: Mapping[str, str]) -> BrokerState:
    """Return a broker that has a transaction coordinator as the real one does, so that no request is repeated."""
    state = new_kproto(release, topic_ids)
    state.cluster.ensure_internal_topic(TRANSACTION_TOPIC, state.clock.now_ms())
    return state


def _run_crowd(transport: Transport, *, seed: int, release: str, ids: Ids) -> tuple[Step, ...]:
    crowd = Crowd(transport, f"crowd-{seed}", release, ids, seed)
    crowd.run()
    return tuple(crowd.steps)


def _run_random(transport: Transport, *, script: Script, name: str, release: str) -> tuple[Step, ...]:
    return run(script, transport, name, release)


def make_ready(address: str) -> dict[str, str]:
    """Create the topics, and wait for the coordinator; return the topic ids."""
    transport = SocketTransport(address)
    topics = tuple(
        CreatableTopic(name=name, num_partitions=count, replication_factor=1, assignments=(), configs=())
        for name, count in TOPICS.items()
    )
    transport.send("ready", CreateTopicsRequest(topics=topics, timeout_ms=10_000), 5)
    transport.responses()

    def is_ready() -> bool:
        transport.send("find", FindCoordinatorRequest(key="g"), 0)
        describe = ConsumerGroupDescribeRequest(group_ids=("g",), include_authorized_operations=False)
        transport.send("describe", describe, 0)
        responses = dict(transport.responses())
        if len(responses) < 2:
            return False
        coordinator, described = responses["find"], responses["describe"]
        not_found = described.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
        return bool(coordinator.error_code == 0 and not_found)

    wait_until(is_ready, "the coordinator")
    group = Conversation(transport, "")
    group.learn_topics(*TOPICS)
    transport.close()
    return {name: topic_id.hex() for name, topic_id in group.topic_ids.items()}


def compare(found: Iterable[Transcript], scripts: dict[str, Script], topic_ids: Mapping[str, str]) -> int:
    """Print the differences to kproto; return how many transcripts differ."""
    different = 0
    for theirs in found:
        ours = run_on_kproto(theirs.release, scripts[theirs.script], topic_ids)
        lines = differences(ours, theirs.steps)
        different += bool(lines)
        if lines:
            print(f"{theirs.release} {theirs.script}", *lines, sep="\n")
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--only", default=",".join(SCRIPTS))
    parser.add_argument("--seeds", type=int, default=0, help="compare random scripts instead")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--mixed", action="store_true", help="with static members, regular expressions and commits")
    parser.add_argument("--crowds", action="store_true", help="with all kinds of members, and topics that change")
    arguments = parser.parse_args()
    scripts = {name: SCRIPTS[name] for name in arguments.only.split(",") if name}
    kept, ids = list(transcripts()), topic_ids_by_release()
    for release in arguments.releases:
        if arguments.seeds:
            seeds = range(arguments.start, arguments.start + arguments.seeds)
            different = (
                try_crowds(release, seeds) if arguments.crowds else try_random(release, seeds, mixed=arguments.mixed)
            )
            print(f"{release}: {arguments.seeds} random scripts, {different} different from kproto", flush=True)
            continue
        of_release = {name: one for name, one in scripts.items() if runs_on(name, release)}
        found, ids[release] = record(release, of_release)
        kept = [one for one in kept if one.release != release or one.script not in scripts] + found
        write(kept, ids)
        different = compare(found, scripts, ids[release])
        print(f"{release}: {len(found)} transcripts, {different} different from kproto")


if __name__ == "__main__":
    main()
