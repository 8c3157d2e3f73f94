"""kfake of franz-go: a fake cluster in Go, in memory (``bench/kfake``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.peers.go import BENCH, build
from bench.peers.server import Launch


class Kfake:
    name = "kfake"

    @contextmanager
    def ready(self, partitions: Sequence[int]) -> Iterator[Launch]:
        program = build("kfake")
        wanted = re.search(r"pkg/kfake (\S+)", (BENCH / "kfake/go.mod").read_text())
        yield Launch(version=wanted[1] if wanted else "unknown", argv=[str(program)])
