"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PARENT, TIMES = 1, slice(11, 15)
"""Fields of /proc/PID/stat behind the program's name: the parent; user, system, and those of children waited for."""


def cpu_seconds() -> dict[int, float]:
    """Return, by process id, user and system time of this process and of all its descendants.

    Each time includes that of the children that have ended and were waited for. The resolution is 10 ms.
    """
    times: dict[int, float] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _fields(entry)
            if fields:
                children[int(fields[PARENT])].append(int(entry.name))
                times[int(entry.name)] = sum(map(int, fields[TIMES])) / TICKS
    found, left = {}, [os.getpid()]
    while left:
        process = left.pop()
        found[process] = times.get(process, 0.0)
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
