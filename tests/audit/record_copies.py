"""Record how the clients of the conformance table copy records, in `fixtures/copies`.

    python -m tests.audit.record_copies [--only CLIENT,...] [RELEASE ...]

For each release and client: the rows of `kproto run`, and in front of a real broker those of `kproto proxy`, its
capture, and the broker's request log.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kproto_server.audit.log_lines import COMPLETED, logged_request
from tests.audit.copies import FOLDER, capture_of, log_of, recorded, rows, rows_of
from tests.audit.copying import COPIED, DRIVER
from tests.audit.record import level
from tests.commandline.commands import kproto
from tests.conformance.copiers import COPIERS
from tests.oracle import launcher
from tests.proxy.proxies import proxy_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

RELEASES = ("3.9.2", "4.4.0")
LIMIT_S = 120


def driver(command: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "tests.audit.copying", *command]


def excerpt(lines: Iterable[str]) -> Iterator[str]:
    """Return the first line of each client in each API and version."""
    seen: Counter[object] = Counter()
    for line in lines:
        request = logged_request(line) if COMPLETED.decode() in line else None
        if request is not None and not request.client_id.startswith(DRIVER):
            key = request.client_id, request.api_key, request.api_version, request.is_forwarded
            seen[key] += 1
            if seen[key] == 1:
                yield line


def run_rows(release: str, command: Sequence[str], folder: Path) -> list[Any]:
    report = folder / "run.json"
    done = kproto("run", "--kafka-version", release, "--report", str(report), "--quiet", "--", *driver(command))
    assert done.returncode == 0, done.stderr
    return rows(json.loads(report.read_text()))


def real_rows(release: str, name: str, command: Sequence[str], folder: Path) -> tuple[list[Any], bool]:
    """Record the capture and the log of a real broker; return the rows of the proxy, and whether all was copied."""
    os.environ["KAFKA_LOG_LEVEL"] = level(release)
    broker = launcher.start(release, folder=folder / "broker")
    capture = folder / "kafka.pcap"
    try:
        with proxy_of(broker.bootstrap, folder, "--capture", str(capture)) as proxy:
            done = subprocess.run(
                driver(command),
                env=os.environ | {"KAFKA_BOOTSTRAP_SERVERS": proxy.address},
                timeout=LIMIT_S,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            report = proxy.end()
    finally:
        launcher.stop(broker.folder)
    text = (broker.folder / "node-1/out.log").read_text()
    for path, content in (
        (log_of(release, name), "".join(excerpt(text.splitlines(keepends=True))).encode()),
        (capture_of(release, name), capture.read_bytes()),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content, mtime=0))
    return rows(report), done.stdout.splitlines()[-1:] == [COPIED]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", default=RELEASES)
    parser.add_argument("--only", default=",".join(COPIERS), help="clients of the table")
    given = parser.parse_args()
    for release in given.releases:
        for name in given.only.split(","):
            command = COPIERS[name].command()
            with tempfile.TemporaryDirectory(prefix="copies-", ignore_cleanup_errors=True) as folder:
                run = run_rows(release, command, Path(folder))
                proxy, has_copied = real_rows(release, name, command, Path(folder))
            found = recorded(release)
            found[name] = {"version": COPIERS[name].version, "run": run, "proxy": proxy}
            FOLDER.mkdir(exist_ok=True)
            rows_of(release).write_text(json.dumps({each: found[each] for each in COPIERS if each in found}) + "\n")
            print(f"{release} {name}: copied {has_copied}, {len(run)} rows, equal {run == proxy}", flush=True)
            for source, these, others in (("run", run, proxy), ("proxy", proxy, run)):
                for row in these:
                    if row not in others:
                        print(f"    {source} only: {row}")


if __name__ == "__main__":
    main()
