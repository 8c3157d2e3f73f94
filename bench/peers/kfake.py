"""kfake of franz-go: a fake cluster in Go (``bench/kfake``), in memory or with a data directory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from bench.peers.durability import AS_ASKED, Durability
from bench.peers.go import BENCH, build
from bench.peers.server import DEFAULTS, Launch, data_directory, emptied
from tests.oracle.ports import free_port


class Kfake:
    name = "kfake"
    beside: Mapping[Durability, Durability] = AS_ASKED
    """``os``: DataDir; ``fsync``: DataDir and SyncWrites."""

    @contextmanager
    def ready(
        self, partitions: Sequence[int], durability: Durability = "memory", settings: Mapping[str, str] = DEFAULTS
    ) -> Iterator[Launch]:
        program = build("kfake")
        wanted = re.search(r"pkg/kfake (\S+)", (BENCH / "kfake/go.mod").read_text())
        in_memory = Launch(version=wanted[1] if wanted else "unknown", argv=[str(program)])
        if durability == "memory":
            yield in_memory
            return
        with data_directory() as data:
            flags = ["-data-dir", str(data), "-port", str(free_port())]  # kfake needs the same port after a restart
            if durability == "fsync":
                flags.append("-sync-writes")
            yield replace(in_memory, argv=[str(program), *flags], data=data, forget=partial(emptied, data))
