"""End a command together with the processes that it has started.

Run as a program, this module is the watcher of `kproto run`: it waits for the end of its standard input, which is the
end of `kproto run`, whatever ended it. The command's process writes its id before it becomes the command, so that there
is no moment in which the command runs unwatched, and `kproto run` writes `DONE` after the command has ended. Without
`DONE` the watcher ends the command and its descendants: SIGTERM, and SIGKILL after `GRACE_S`.

It works on any POSIX system: no death signal of Linux (PR_SET_PDEATHSIG) would reach the processes that the command has
started. It misses a process whose parent has ended before, a daemon.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

DONE = "done"
IS_EXECUTABLE: bool = getattr(sys, "frozen", False)
"""Whether this is kproto's own executable, which is no interpreter of Python, and not a program that Python runs."""
WATCH = "watch-processes"
"""The word with which the executable is the watcher."""
GRACE_S = 2.0
"""From SIGTERM to SIGKILL."""
CHECK_S = 0.05


class ProcessTree:
    """A process and its descendants, each with its start, as process ids are used again."""

    def __init__(self, pid: int) -> None:
        parents = _parents()
        self._started = {pid: parents[pid][1]} if pid in parents else {}
        self._add_children(parents)

    def alive(self) -> list[int]:
        """Return the process ids of those that still run, children that they have started since included."""
        parents = _parents()
        self._started = {pid: start for pid, start in self._started.items() if parents.get(pid, (0, ""))[1] == start}
        self._add_children(parents)
        return list(self._started)

    def end(self) -> None:
        """End each: SIGTERM, and SIGKILL after `GRACE_S`."""
        for pid in self.alive():
            _send(pid, signal.SIGTERM)
        end = time.monotonic() + GRACE_S
        while self.alive() and time.monotonic() < end:
            time.sleep(CHECK_S)
        for pid in self.alive():
            _send(pid, signal.SIGKILL)

    def _add_children(self, parents: dict[int, tuple[int, str]]) -> None:
        found = set(self._started)
        while found:
            found = {pid for pid, (parent, _) in parents.items() if parent in found and pid not in self._started}
            self._started |= {pid: parents[pid][1] for pid in found}


def _parents() -> dict[int, tuple[int, str]]:
    """Return, by process id, the parent's process id and the time of the start; without zombies."""
    if sys.platform == "linux":
        return dict(filter(None, map(_linux_parent, filter(str.isdigit, os.listdir("/proc")))))
    columns = ["ps", "-axo", "pid=,ppid=,stat=,lstart="]
    lines = subprocess.run(columns, capture_output=True, text=True, check=False).stdout.splitlines()
    rows = (line.split(None, 3) for line in lines)
    return {int(pid): (int(parent), start) for pid, parent, state, start in rows if not state.startswith("Z")}


def parent_of(pid: int) -> int:
    """Return the process id of a process's parent; 0: the process has ended."""
    found = _linux_parent(str(pid)) if sys.platform == "linux" else (pid, _parents().get(pid, (0, "")))
    return 0 if found is None else found[1][0]


def _linux_parent(pid: str) -> tuple[int, tuple[int, str]] | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:  # it has ended
        return None
    return None if fields[0] in "ZX" else (int(pid), (int(fields[1]), fields[19]))


def _send(pid: int, number: int) -> None:
    with suppress(OSError):  # it has ended, or belongs to another user
        os.kill(pid, number)


class Watcher:
    """The watcher's process, as `kproto run` has it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, WATCH] if IS_EXECUTABLE else [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # no signal of the terminal or of a process group ends it
        )

    def watch_this_process(self) -> None:
        """Have the process that calls this ended if the watcher's owner ends before `done`.

        Called between fork and exec: only system calls, as other threads may have held locks at the fork.
        """
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the watcher may have been killed
        self._write(str(os.getpid()))
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    def done(self) -> None:
        """End the watcher: the command has ended."""
        self._write(DONE)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # the watcher was killed
            os.write(self._process.stdin.fileno(), f"{line}\n".encode())


def main() -> None:
    """Wait for the end of standard input, then end the command unless it has ended."""
    lines = sys.stdin.read().split()
    if lines and DONE not in lines:
        ProcessTree(int(lines[0])).end()


if __name__ == "__main__":
    main()
