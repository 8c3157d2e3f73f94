"""The time of a reset by the control API, which tests do in place of a restart."""

from __future__ import annotations

import http.client
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic, perf_counter, sleep
from urllib.parse import urlsplit

from bench.first_commit import first_commit
from bench.model import BenchError
from bench.peers.server import Launch, started

NO_CONTENT = 204
PATIENCE_SECONDS = 10.0


@contextmanager
def resetting(launch: Launch) -> Iterator[Callable[[], float]]:
    """Start a broker with a control port; give a function that commits an offset and returns the seconds of a reset."""
    with tempfile.TemporaryDirectory(prefix="kproto-bench-") as folder:
        file = Path(folder) / "control"
        flags = ["--control-port", "0", "--control-file", str(file)]
        with started(replace(launch, argv=[*launch.argv, *flags])) as server:
            address = urlsplit(_content(file))
            connection = http.client.HTTPConnection(str(address.hostname), address.port)

            def reset() -> float:
                first_commit(server.port)
                began = perf_counter()
                connection.request("POST", "/reset")
                response = connection.getresponse()
                response.read()
                if response.status != NO_CONTENT:
                    raise BenchError(f"a reset had status {response.status}")
                return perf_counter() - began

            reset()  # not measured: the first connection imports the API
            yield reset
            connection.close()


def _content(file: Path) -> str:
    end = monotonic() + PATIENCE_SECONDS
    while not file.exists():
        if monotonic() > end:
            raise BenchError("kproto has written no control file")
        sleep(0.001)
    return file.read_text().strip()
