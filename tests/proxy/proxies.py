"""`kproto proxy` as a process, and its report."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.commandline.commands import Process, end_of, kproto_started, line_of


class RunningProxy:
    """A proxy that listens; `end` ends it and returns its report."""

    def __init__(self, process: Process, report: Path) -> None:
        self._process = process
        self._report = report
        self.address = line_of(process).removeprefix("kproto: listening on ")
        self.cluster = line_of(process)
        """The line that names the cluster."""
        self.errors = ""
        """What it printed on standard error, after its end."""

    def line(self) -> str:
        """Return the next line of its standard output."""
        return line_of(self._process)

    def end(self, exit_code: int = 0) -> dict[str, Any]:
        self._process.send_signal(signal.SIGTERM)
        _, self.errors = end_of(self._process)
        assert self._process.returncode == exit_code, self.errors
        report: dict[str, Any] = json.loads(self._report.read_text())
        return report


@contextmanager
def proxy_of(upstream: str, folder: Path, *words: str) -> Iterator[RunningProxy]:
    """Start a proxy on a free port in front of a broker; it ends with the block."""
    report = folder / "proxy.json"
    with kproto_started(
        "proxy", "--upstream", upstream.split(",")[0], "--port", "0", "--report", str(report), *words
    ) as process:
        yield RunningProxy(process, report)
