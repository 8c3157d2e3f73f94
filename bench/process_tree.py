"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PARENT, TIMES = 1, slice(11, 15)
"""Fields of /proc/PID/stat behind the program's name: the parent; user, system, and those of children waited for."""


def cpu_seconds() -> float:
    """Return user and system time of this process and all its descendants, ended children included.

    The resolution is 10 ms. A process that has ended and was not waited for is not counted.
    """
    times: dict[int, float] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _fields(entry)
            if fields:
                children[int(fields[PARENT])].append(int(entry.name))
                times[int(entry.name)] = sum(map(int, fields[TIMES])) / TICKS
    found, left = 0.0, [os.getpid()]
    while left:
        process = left.pop()
        found += times.get(process, 0.0)
        left += children[process]
    return found


def resident_bytes(pid: int | str = "self") -> int:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def _fields(entry: Path) -> list[str]:
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return []
