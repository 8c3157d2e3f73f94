"""Real brokers on directories of other brokers: copy the directory, start the broker, and read its log."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from tests.network.raw_client import RawClient
from tests.oracle.cluster import kafka
from tests.oracle.releases import number
from tests.waiting import wait_until

CLEAN_STOP = ".kafka_cleanshutdown"
"""If this file exists, a broker trusts the indexes and skips recovery (LF-62)."""
COMPLAINT = re.compile(r"\[[^\]]*\] (?:WARN|ERROR|FATAL) .*")
EXPECTED = re.compile(
    r"No meta\.properties file under dir"  # of a release with ZooKeeper, when it starts for the first time
    r"|Performing controller activation"  # every start without ZooKeeper
    r"|Unexpected error handling request .*CONTROLLER_REGISTRATION"  # now and then, before the controller is active
)


@dataclass(frozen=True, slots=True)
class RealBroker:
    """A broker of a release, with a folder for it and its ZooKeeper; it can be started repeatedly."""

    release: str
    settings: Mapping[str, str]
    folder: Path

    @property
    def log_dir(self) -> Path:
        return self.folder / "node-1" / "data"

    @property
    def is_kraft(self) -> bool:
        return number(self.release) >= (3, 3)

    def start(self) -> str:
        """Start the broker; return its address when it responds."""
        settings = [word for name, value in self.settings.items() for word in ("--prop", f"{name}={value}")]
        self._output.unlink(missing_ok=True)
        return kafka("start", self.release, "--dir", str(self.folder), *settings)

    def stop(self) -> None:
        """Shut the broker down cleanly."""
        kafka("stop", str(self.folder))

    def kill(self) -> None:
        """Kill the broker, and shut ZooKeeper down."""
        kafka("node", "kill", str(self.folder), "1")
        kafka("stop", str(self.folder))

    def complaints(self) -> list[str]:
        """Return the warnings and errors since the start."""
        return [line for line in COMPLAINT.findall(self.log()) if not EXPECTED.search(line)]

    def log(self) -> str:
        """Return the broker's log since the start."""
        return self._output.read_text()

    @property
    def _output(self) -> Path:
        return self.folder / "node-1" / "out.log"


@contextmanager
def real_broker(release: str, settings: Mapping[str, str]) -> Iterator[RealBroker]:
    """Yield a broker that is not started; kill it at the end."""
    with tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True) as name:
        broker = RealBroker(release, settings, Path(name))
        try:
            yield broker
        finally:
            if broker.log_dir.exists():
                broker.kill()


def start_on(broker: RealBroker, log_dir: Path) -> str:
    """Replace the broker's log.dir by one of kproto as in LF-55; start the broker and return its address."""
    if broker.is_kraft:
        _make_offsets_topic(broker)
    target = broker.log_dir
    target.mkdir(parents=True, exist_ok=True)
    for entry in log_dir.iterdir():
        if entry.is_dir():
            _put_partition(entry, target / entry.name)
        else:
            shutil.copy(entry, target)
    (target / CLEAN_STOP).unlink(missing_ok=True)
    return broker.start()


def _make_offsets_topic(broker: RealBroker) -> None:
    """Create the offsets topic: a KRaft broker serves only directories of topics that its metadata has."""
    with RawClient(broker.start()) as client:
        request = FindCoordinatorRequest(key="g")
        wait_until(lambda: client.ask(request, 1).error_code == 0, "the offsets topic")
    broker.stop()


def _put_partition(source: Path, target: Path) -> None:
    """Replace a partition's directory, except for the topic id, which must be that of the broker's metadata."""
    identity = target / "partition.metadata"
    content = identity.read_bytes() if identity.exists() else None
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    if content is not None:
        identity.write_bytes(content)
