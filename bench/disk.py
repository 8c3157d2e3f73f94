"""The yardstick of all that is synced: what the disk itself needs."""

from __future__ import annotations

import os
import tempfile
from statistics import quantiles
from time import perf_counter

WRITES = 100
SIZE = 4096
RESERVED = 1 << 20


def sync_time() -> str:
    """One line: how long a write of one page and its fdatasync take where the data directories are made."""
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
    return (
        f"fdatasync in {directory}: {min(times):.0f} us at best, {tenths[4]:.0f} in the median, {tenths[8]:.0f} at 90 %"
    )
