"""Run `kproto` as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

HERE = Path(__file__).parent
KPROTO = (sys.executable, "-m", "kproto_server")
LIMIT_S = 60.0
"""A process that runs longer hangs. The slowest, two Java programs one after the other, take ten seconds."""

Process = subprocess.Popen[str]


def kproto(*words: str) -> subprocess.CompletedProcess[str]:
    """Run kproto with these arguments until the process ends."""
    with kproto_started(*words) as process:
        out, err = end_of(process)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def kproto_started(*words: str) -> AbstractContextManager[Process]:
    """Start kproto without a terminal; at the end, kill it and its command if they still run."""
    return process_started(*KPROTO, *words)


@contextmanager
def process_started(*command: str) -> Iterator[Process]:
    """Start a program without a terminal and yield the process; at the end, kill it and its children."""
    process = subprocess.Popen(
        [*command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONFAULTHANDLER": "1"},  # for `end_of`
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LIMIT_S)


def end_of(process: Process) -> tuple[str, str]:
    """Wait for the process's end; return its output and its standard error.

    Raises:
        AssertionError: it hangs; the text has what each of its threads does, if it is Python's.
    """
    try:
        return process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        _, err = process.communicate(timeout=LIMIT_S)
        raise AssertionError(f"it hangs: {err}") from None


def line_of(process: Process) -> str:
    """Return the next line of the process's standard output."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"no more output; standard error: {process.communicate(timeout=LIMIT_S)[1]}"
    return line.rstrip("\n")


def is_running(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:1] not in ("", "Z")


def python(program: str) -> tuple[str, ...]:
    """Return the command that runs a Python program, given as text."""
    return (sys.executable, "-c", program)


OLD_CLIENT = (sys.executable, str(HERE / "old_client.py"))
"""A client from before ApiVersions: it sends ListOffsets v0 and Metadata v0."""
