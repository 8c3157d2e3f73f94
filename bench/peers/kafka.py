"""Apache Kafka, the newest release, started by the script ``tests/oracle/kafka``.

The script creates the broker once, which formats its disk. Later starts use the broker's own command line, so that
formatting and script are not measured.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.model import Missing
from bench.peers.durability import Durability
from bench.peers.server import DEFAULTS, Launch, data_directory
from tests.oracle.ports import free_port

SCRIPT = Path(__file__).parents[2] / "tests/oracle/kafka"
TO_START_FAST = {"KAFKA_JVM": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1", "KAFKA_HEAP": "512m"}
TO_RUN_FAST = {"KAFKA_JVM": "-XX:+UseG1GC", "KAFKA_HEAP": "1g"}


SHARE_STATES = {"share.coordinator.state.topic.replication.factor": "1", "share.coordinator.state.topic.min.isr": "1"}
FLUSHED: dict[Durability, dict[str, str]] = {"os": {}, "fsync": {"log.flush.interval.messages": "1"}}


class Kafka:
    name = "kafka"
    beside: Mapping[Durability, Durability] = {"memory": "os", "os": "os", "fsync": "fsync"}
    """Kafka always writes to the page cache; ``fsync`` is ``log.flush.interval.messages=1``."""

    @contextmanager
    def ready(
        self, partitions: Sequence[int], durability: Durability = "os", settings: Mapping[str, str] = DEFAULTS
    ) -> Iterator[Launch]:
        for tool in ("java", "mvn"):
            if shutil.which(tool) is None:
                raise Missing(f"no `{tool}` on the PATH")
        version = Path(_script("fetch", "newest")).name
        with data_directory() as folder:
            port = free_port()
            tuning = TO_RUN_FAST if partitions else TO_START_FAST
            argv = _made_once(folder, version, port, tuning, {**SHARE_STATES, **FLUSHED[durability], **settings})
            node, kept = folder / "node-1", folder / "formatted"
            shutil.copytree(node / "data", kept)

            def forget() -> None:
                shutil.rmtree(node / "data")
                shutil.copytree(kept, node / "data")

            yield Launch(version=version, argv=argv, port=port, cwd=node, data=node / "data", forget=forget)


def _made_once(folder: Path, version: str, port: int, tuning: dict[str, str], settings: dict[str, str]) -> list[str]:
    """Create a broker in ``folder`` and stop it; return its command line."""
    properties = [f"--prop={name}={value}" for name, value in settings.items()]
    try:
        _script("start", version, "--dir", str(folder), "--port", str(port), *properties, environment=tuning)
        pid = (folder / "node-1/pid").read_text().split()[0]
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
    finally:
        _script("stop", str(folder))


def _script(*arguments: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        raise Missing(f"`tests/oracle/kafka {arguments[0]}` failed: {last}")
    return done.stdout.strip()
