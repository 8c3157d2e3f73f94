"""kproto itself: the console script, and the broker inside a running Python."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.model import KPROTO, Missing
from bench.peers.durability import AS_ASKED, Durability
from bench.peers.server import DEFAULTS, Launch, data_directory, emptied

BEFORE_VARIABLE = "KPROTO_BENCH_BEFORE"
"""The environment variable that names the console script of another build of kproto."""


class Kproto:
    """kproto by a console script: by default the one of this Python."""

    beside: Mapping[Durability, Durability] = AS_ASKED
    flags: Sequence[str] = ()

    def __init__(self, name: str = KPROTO, script: str | None = None) -> None:
        self.name = name
        self._script = script

    @contextmanager
    def ready(
        self, partitions: Sequence[int], durability: Durability = "memory", settings: Mapping[str, str] = DEFAULTS
    ) -> Iterator[Launch]:
        script = self._script or shutil.which("kproto", path=str(Path(sys.executable).parent)) or shutil.which("kproto")
        if script is None:
            raise Missing("no console script `kproto` beside this Python (pip install -e .)")
        assignments = [f"--set={name}={value}" for name, value in settings.items()]
        in_memory = Launch(version=installed(), argv=[script, "serve", "--port", "0", *self.flags, *assignments])
        if durability == "memory":
            yield in_memory
            return
        with data_directory() as data:
            flags = ["--data-dir", str(data), "--durability", durability]
            yield replace(in_memory, argv=[*in_memory.argv, *flags], data=data, forget=partial(emptied, data))


class KprotoWithControl(Kproto):
    """kproto with its control port, and so with page and metrics, which get no requests; in memory."""

    beside = {"memory": "memory"}  # noqa: RUF012 - a constant
    flags = ("--control-port", "0")


CONTROLLED = KprotoWithControl("kproto-control")

BEFORE = tuple(Kproto("before", os.environ[name]) for name in [BEFORE_VARIABLE] if name in os.environ)
"""The other build of kproto, to compare with in the same run."""
BUILDS = frozenset({KPROTO, CONTROLLED.name, *(one.name for one in BEFORE)})
"""Servers that are compared round by round. Others compile themselves meanwhile: their best rounds count."""


@contextmanager
def running() -> Iterator[int]:
    """Serve in this process; give the port. Leaving the context stops the broker.

    Raises:
        Missing: the broker is not installed.
    """
    if importlib.util.find_spec("kproto_server") is None:
        raise Missing("kproto is not installed in this Python (pip install -e .)")
    from kproto_server.broker.broker import Broker

    with Broker.running() as broker:
        yield int(broker.bootstrap_servers.rpartition(":")[2])


def installed() -> str:
    """Return the installed version."""
    try:
        return version("kproto")
    except PackageNotFoundError:
        return "from the source tree"
