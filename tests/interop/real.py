"""Real brokers on directories of others: put there what is to be loaded, start, and read what the broker says of it."""

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
"""Where it is, a broker takes indexes for right and recovers nothing (LF-62)."""
COMPLAINT = re.compile(r"\[[^\]]*\] (?:WARN|ERROR|FATAL) .*")
EXPECTED = re.compile(
    r"No meta\.properties file under dir"  # of a release with ZooKeeper, when it starts for the first time
    r"|Performing controller activation"  # every start without ZooKeeper
)


@dataclass(frozen=True, slots=True)
class Real:
    """A broker of a release, with a folder for it and its ZooKeeper; it may be started again and again."""

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
        """Return the address once it answers."""
        settings = [word for name, value in self.settings.items() for word in ("--prop", f"{name}={value}")]
        self._output.unlink(missing_ok=True)
        return kafka("start", self.release, "--dir", str(self.folder), *settings)

    def stop(self) -> None:
        """Stop it in order."""
        kafka("stop", str(self.folder))

    def kill(self) -> None:
        """End it at once, and ZooKeeper in order."""
        kafka("node", "kill", str(self.folder), "1")
        kafka("stop", str(self.folder))

    def complaints(self) -> list[str]:
        """The warnings and errors since it was started."""
        return [line for line in COMPLAINT.findall(self.said()) if not EXPECTED.search(line)]

    def said(self) -> str:
        """Its log since it was started."""
        return self._output.read_text()

    @property
    def _output(self) -> Path:
        return self.folder / "node-1" / "out.log"


@contextmanager
def real_broker(release: str, settings: Mapping[str, str]) -> Iterator[Real]:
    """A broker that was not started yet; it is ended in the end."""
    with tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True) as name:
        broker = Real(release, settings, Path(name))
        try:
            yield broker
        finally:
            if broker.log_dir.exists():
                broker.kill()


def start_on(broker: Real, log_dir: Path) -> str:
    """Put a log.dir of ours in the place of the broker's own, as LF-55 says; start it and return its address."""
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


def _make_offsets_topic(broker: Real) -> None:
    """A broker without ZooKeeper serves only those directories whose topic its metadata has."""
    with RawClient(broker.start()) as client:
        asked = FindCoordinatorRequest(key="g")
        wait_until(lambda: client.ask(asked, 1).error_code == 0, "the offsets topic")
    broker.stop()


def _put_partition(source: Path, target: Path) -> None:
    """The topic's id stays that of the broker's metadata; all else, indexes and snapshots too, is replaced."""
    identity = target / "partition.metadata"
    kept = identity.read_bytes() if identity.exists() else None
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    if kept is not None:
        identity.write_bytes(kept)
