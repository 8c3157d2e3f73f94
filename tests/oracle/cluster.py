"""Real Kafka clusters of any release for tests, started and stopped by the script `kafka` in this folder."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.requirements import missing, need_java, need_maven

SCRIPT = Path(__file__).with_name("kafka")

NEWEST = "4.4.0"
"""The newest release in the tests: a constant, so that a new release does not change a test run."""

AS_DELIVERED = {"log.index.size.max.bytes": ""}
"""Removes a setting of the script that topic descriptions show."""


def kafka(*args: str) -> str:
    """Run the script and return its output; skip the test if Java or Maven is missing."""
    if sys.platform != "linux":
        missing("needs Linux: the script that runs real Kafka watches its processes through /proc")
    need_java()
    need_maven()
    done = subprocess.run([sys.executable, str(SCRIPT), *args], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"kafka {' '.join(args)}: {done.stdout}{done.stderr}", pytrace=False)
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster of real brokers with node ids 1, 2, ...; node 1 of a KRaft release is the controller too."""

    version: str
    addresses: tuple[str, ...]
    """host:port of each broker in the order of the node ids, whether or not it runs."""
    folder: Path

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses)

    def start(self, node_id: int) -> None:
        """Start a broker; return when all running brokers know each other."""
        kafka("node", "start", str(self.folder), str(node_id))

    def stop(self, node_id: int) -> None:
        """Stop a broker by a controlled shutdown."""
        kafka("node", "stop", str(self.folder), str(node_id))

    def kill(self, node_id: int) -> None:
        """Kill a broker. The others notice when its session times out (9 s by default)."""
        kafka("node", "kill", str(self.folder), str(node_id))


@contextmanager
def real_kafka(
    version: str = NEWEST, brokers: int = 1, up: int | None = None, props: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Run a cluster of real brokers; stop and remove it at the end.

    Args:
        version: x.y.z of the release.
        brokers: number of brokers.
        up: number of brokers to start, from node 1 on; `Cluster.start` starts the others. All by default.
        props: settings of each broker; an empty value removes a setting of the script, +V adds V to its list.
    """
    with tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True) as name:
        settings = [word for key, value in (props or {}).items() for word in ("--prop", f"{key}={value}")]
        counts = ["--brokers", str(brokers), "--up", str(brokers if up is None else up)]
        addresses = kafka("start", version, "--dir", name, *counts, *settings)
        try:
            yield Cluster(version, tuple(addresses.split(",")), Path(name))
        finally:
            kafka("stop", name)
