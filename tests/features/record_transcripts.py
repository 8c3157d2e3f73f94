"""Run the scripts against real brokers, and write the transcripts to `fixtures/features`.

    python -m tests.features.record_transcripts 3.9.2 4.4.0 [--only wrong_updates]

Prints the differences to kproto.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from kproto_server.releases.kafka_version import KafkaVersion
from tests.features.administrator import UPDATE_FEATURES, Administrator
from tests.features.scripts import SCRIPTS
from tests.features.transcripts import RECORDED
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import Transport
from tests.membership.socket_transport import SocketTransport
from tests.oracle import launcher
from tests.transcripts import Transcript

IN_ALL_VERSIONS = "wrong_updates"


def record(release: str, names: Sequence[str]) -> list[Transcript]:
    """Run each script against a new broker of a release."""
    return [_run_on_broker(release, name, version) for name in names for version in versions_of(name, release)]


def versions_of(name: str, release: str) -> list[int]:
    """Return the versions of UpdateFeatures in which a script runs: v0 cannot lower levels."""
    low, high = KafkaVersion.named(release).api_versions[UPDATE_FEATURES]
    return list(range(low if name == IN_ALL_VERSIONS else max(low, 1), high + 1))


def run(transport: Transport, release: str, name: str, version: int) -> Transcript:
    """Run a script over a transport."""
    administrator = Administrator(transport, KafkaVersion.named(release), version)
    SCRIPTS[name](administrator)
    return Transcript(name, version, release, tuple(administrator.steps))


def _run_on_broker(release: str, name: str, version: int) -> Transcript:
    with tempfile.TemporaryDirectory(prefix="features-", ignore_cleanup_errors=True) as folder:
        line, _, mode = release.partition("-")
        broker = launcher.start(line, folder=Path(folder), zookeeper=mode == "zookeeper")
        transport = SocketTransport(broker.bootstrap)
        try:
            return run(transport, release, name, version)
        finally:
            transport.close()
            launcher.stop(Path(folder))


def run_on_kproto(release: str, name: str, version: int) -> Transcript:
    """Run a script against kproto, in the Kafka version of the release."""
    return run(InMemoryTransport.of(release), release, name, version)


if __name__ == "__main__":
    RECORDED.record(__doc__, record, run_on_kproto)
