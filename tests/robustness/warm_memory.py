"""Memory of another process, kept mapped: for a virtual machine whose host takes pages away that are not used.

On some hosts a page that was not used for a second costs 5 to 25 us at its next use, as CPU time of the process and
without a page fault that the guest's kernel counts. A broker with 150 MB then spends 200 ms more on a request, or none,
by what was asked before. A read of the page through `/proc/PID/mem` costs the reader that time instead, and keeps the
page for the broker, without a turn of the broker. On a machine with memory of its own it changes nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PERIOD_S = 0.15
PART_BYTES = 1 << 20


@contextmanager
def warm_memory(pid: int) -> Iterator[None]:
    """Read all memory of a child process again and again, in a thread, until the end of the ``with`` block."""
    is_ending = threading.Event()
    thread = threading.Thread(target=_read_until, args=(pid, is_ending), name="warm-memory", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_ending.set()
        thread.join()


def _read_until(pid: int, is_ending: threading.Event) -> None:
    part = bytearray(PART_BYTES)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        while not is_ending.wait(PERIOD_S):
            _read(pid, memory.fileno(), part)


def _read(pid: int, memory: int, part: bytearray) -> None:
    """Read each readable page of the process, a part at a time."""
    for start, end in _mappings(pid):
        for address in range(start, end, len(part)):
            try:
                os.preadv(memory, [memoryview(part)[: end - address]], address)
            except OSError:  # the mapping has gone meanwhile, or belongs to a device
                break


def _mappings(pid: int) -> Iterator[tuple[int, int]]:
    """Yield the first address, and that after the last, of each mapping that can be read; none after the end."""
    try:
        with open(f"/proc/{pid}/maps") as lines:
            maps = lines.read().splitlines()
    except OSError:
        return
    for line in maps:
        addresses, modes, _ = line.split(" ", 2)
        if modes.startswith("r") and not line.endswith(("[vvar]", "[vvar_vclock]", "[vsyscall]")):
            start, _, end = addresses.partition("-")
            yield int(start, 16), int(end, 16)
