"""Record the request logs of real brokers while the program of this directory runs, in `fixtures/request-logs`.

    python -m tests.audit.record 2.0.1 4.4.0

An excerpt has the first request of each client in each API and version, the first of brokers in each API, and the first
lines that are no requests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from kproto_server.audit.log_lines import COMPLETED, logged_request
from kproto_server.releases.kafka_version import KafkaVersion
from tests.audit.recorded import CLIENTS, LEVELS, log_of, program
from tests.oracle import launcher

OTHER_LINES = 3
LIMIT_S = 60


def level(release: str) -> str:
    """Return a level for the launcher's configuration of log4j that has the request logger's level behind it."""
    if KafkaVersion.named(release).at_least(4, 0):
        return f"WARN\nlogger.request.name=kafka.request.logger\nlogger.request.level={LEVELS[release]}"
    return f"WARN, out\nlog4j.logger.kafka.request.logger={LEVELS[release]}\nlog4j.logger.none=WARN"


def excerpt(lines: Iterable[str]) -> Iterator[str]:
    seen: Counter[object] = Counter()
    for line in lines:
        if COMPLETED.decode() not in line:
            key: object = None
        else:
            request = logged_request(line)
            assert request is not None, line
            is_client = request.client_id in CLIENTS
            key = (request.client_id, request.api_key, request.api_version if is_client else None, request.is_forwarded)
        seen[key] += 1
        if seen[key] <= (OTHER_LINES if key is None else 1):
            yield line


def record(release: str) -> None:
    os.environ["KAFKA_LOG_LEVEL"] = level(release)
    with tempfile.TemporaryDirectory(prefix="request-log-", ignore_cleanup_errors=True) as folder:
        broker = launcher.start(release, folder=Path(folder))
        try:
            servers = {"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap}
            subprocess.run(program(release), env=os.environ | servers, timeout=LIMIT_S, check=True)
        finally:
            launcher.stop(broker.folder)
        text = (broker.folder / "node-1/out.log").read_text().replace(str(broker.folder), "/kafka")
    path = log_of(release)
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(excerpt(text.splitlines(keepends=True))))
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    for name in sys.argv[1:] or LEVELS:
        record(name)
