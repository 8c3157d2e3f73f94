"""Play the scripts to real brokers and keep the transcripts in `fixtures/membership`.

    python -m tests.membership.record 2.0.1 4.4.0 [--only two_members,a_full_group]

Takes about a minute and a half a release: members wait in real time. Prints where ours says something else.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.recorded import SETTINGS, Transcript, transcripts, versions_of, write
from tests.membership.scripts import SCRIPTS
from tests.membership.sessions import SessionLine
from tests.membership.talk import Talk, differences
from tests.membership.wire import WireLine
from tests.oracle import launcher
from tests.waiting import wait_until

AT_ONCE = 8
"""Conversations; nearly all of their time is waiting."""


def record(release: str, names: Sequence[str]) -> list[Transcript]:
    """Play scripts to a release."""
    todo = [(name, version) for name in names for version in versions_of(name, release)]
    with tempfile.TemporaryDirectory(prefix="membership-", ignore_cleanup_errors=True) as folder:
        broker = launcher.start(release, folder=Path(folder), props=SETTINGS)
        try:
            _make_ready(broker.bootstrap)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                played = [pool.submit(play_on_wire, broker.bootstrap, release, *what) for what in todo]
            return [one.result() for one in played]
        finally:
            launcher.stop(Path(folder))


def play_on_wire(address: str, release: str, name: str, join_version: int) -> Transcript:
    line = WireLine(address)
    try:
        talk = Talk(line, KafkaVersion.named(release), f"group-{name}-{join_version}", join_version)
        SCRIPTS[name].play(talk)
        return Transcript(name, join_version, release, tuple(talk.steps))
    finally:
        line.close()


def play_with_ours(release: str, name: str, join_version: int) -> Transcript:
    """The same with our broker, in the Kafka version of the release."""
    line = SessionLine.of(release, SETTINGS)
    talk = Talk(line, KafkaVersion.named(release), f"group-{name}-{join_version}", join_version)
    SCRIPTS[name].play(talk)
    return Transcript(name, join_version, release, tuple(talk.steps))


def _make_ready(address: str) -> None:
    """Have the topic and the coordinator."""
    line = WireLine(address)

    def is_there() -> bool:
        line.send("ready", MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), 0)
        line.send("ready", FindCoordinatorRequest(key="g"), 0)
        (_, metadata), (_, coordinator) = line.answers()
        return bool(coordinator.error_code == 0 and metadata.topics[0].error_code == 0)

    wait_until(is_there, "the topic and the coordinator")
    line.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--only", default=",".join(SCRIPTS))
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    kept = list(transcripts())
    for release in arguments.releases:
        found = record(release, names)
        kept = [one for one in kept if one.release != release or one.script not in names] + found
        write(kept)
        parted = 0
        for theirs in found:
            lines = differences(play_with_ours(release, theirs.script, theirs.join_version).steps, theirs.steps)
            parted += bool(lines)
            if lines:
                print(f"{release} v{theirs.join_version} {theirs.script}", *lines, sep="\n")
        print(f"{release}: {len(found)} transcripts, {parted} of ours part")


if __name__ == "__main__":
    main()
