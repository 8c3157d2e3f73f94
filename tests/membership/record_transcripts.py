"""Run the scripts against real brokers, and write the transcripts to `fixtures/membership`.

    python -m tests.membership.record_transcripts 2.0.1 4.4.0 [--only two_members,a_full_group]

A release takes about a minute and a half, as members wait in real time. Prints the differences to kproto.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import Members
from tests.membership.scripts import SCRIPTS
from tests.membership.socket_transport import SocketTransport
from tests.membership.transcripts import RECORDED, SETTINGS, versions_of
from tests.oracle import launcher
from tests.transcripts import Transcript
from tests.waiting import wait_until

AT_ONCE = 8
"""Scripts at the same time; nearly all of their time is waiting."""


def record(release: str, names: Sequence[str]) -> list[Transcript]:
    """Run scripts against a release."""
    todo = [(name, version) for name in names for version in versions_of(name, release)]
    with tempfile.TemporaryDirectory(prefix="membership-", ignore_cleanup_errors=True) as folder:
        broker = launcher.start(release, folder=Path(folder), props=SETTINGS)
        try:
            _make_ready(broker.bootstrap)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                runs = [pool.submit(run_on_broker, broker.bootstrap, release, *what) for what in todo]
            return [one.result() for one in runs]
        finally:
            launcher.stop(Path(folder))


def run_on_broker(address: str, release: str, name: str, join_version: int) -> Transcript:
    transport = SocketTransport(address)
    try:
        members = Members(transport, KafkaVersion.named(release), f"group-{name}-{join_version}", join_version)
        SCRIPTS[name].run(members)
        return Transcript(name, join_version, release, tuple(members.steps))
    finally:
        transport.close()


def run_on_kproto(release: str, name: str, join_version: int) -> Transcript:
    """Run a script against kproto, in the Kafka version of the release."""
    transport = InMemoryTransport.of(release, SETTINGS)
    members = Members(transport, KafkaVersion.named(release), f"group-{name}-{join_version}", join_version)
    SCRIPTS[name].run(members)
    return Transcript(name, join_version, release, tuple(members.steps))


def _make_ready(address: str) -> None:
    """Wait for the topic and the coordinator."""
    transport = SocketTransport(address)

    def is_ready() -> bool:
        transport.send("ready", MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), 0)
        transport.send("ready", FindCoordinatorRequest(key="g"), 0)
        (_, metadata), (_, coordinator) = transport.responses()
        return bool(coordinator.error_code == 0 and metadata.topics[0].error_code == 0)

    wait_until(is_ready, "the topic and the coordinator")
    transport.close()


if __name__ == "__main__":
    RECORDED.record(__doc__, record, run_on_kproto)
