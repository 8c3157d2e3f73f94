"""The time of a sync on the disk itself, for comparison with all benches that sync."""

from __future__ import annotations

import os
import tempfile
from statistics import quantiles
from time import perf_counter

WRITES = 100
SIZE = 4096
RESERVED = 1 << 20


def sync_time() -> str:
    """Return one line: the time of a page write and its fdatasync on the disk of the data directories."""
    with tempfile.TemporaryFile(prefix="kproto-bench-") as file:
        descriptor = file.fileno()
        os.posix_fallocate(descriptor, 0, RESERVED)
        os.fsync(descriptor)
        times = []
        for nth in range(WRITES):
            began = perf_counter()
            os.pwrite(descriptor, bytes(SIZE), nth * SIZE)
            os.fdatasync(descriptor)
            times.append((perf_counter() - began) * 1e6)
    tenths = quantiles(times, n=10)
    directory = tempfile.gettempdir()
    return f"fdatasync in {directory}: {min(times):.0f} us at best, median {tenths[4]:.0f}, 90 % {tenths[8]:.0f}"
