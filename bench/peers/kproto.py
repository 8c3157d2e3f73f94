"""kproto itself: the console script, and the broker inside a running Python."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.model import KPROTO, Missing
from bench.peers.server import Launch


class Kproto:
    name = KPROTO

    @contextmanager
    def ready(self, partitions: Sequence[int]) -> Iterator[Launch]:
        script = shutil.which("kproto", path=str(Path(sys.executable).parent)) or shutil.which("kproto")
        if script is None:
            raise Missing("no console script `kproto` beside this Python (pip install -e .)")
        yield Launch(version=installed(), argv=[script, "serve", "--port", "0"])


@contextmanager
def running() -> Iterator[int]:
    """Serve in this process; gives the port.

    Raises:
        Missing: the broker is not installed.
    """
    if importlib.util.find_spec("kproto_server") is None:
        raise Missing("kproto is not installed in this Python (pip install -e .)")
    from kproto_server.broker import Broker

    with Broker.running() as broker:
        yield int(broker.bootstrap_servers.rpartition(":")[2])


def installed() -> str:
    """The version that is installed, for the record."""
    try:
        return version("kproto")
    except PackageNotFoundError:
        return "from the source tree"
