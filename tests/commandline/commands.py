"""`kproto` as a process, for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
KPROTO = (sys.executable, "-m", "kproto_server")
LIMIT_S = 60.0
"""A process that takes longer hangs; the slowest here, two Java programs after each other, take ten seconds."""

Process = subprocess.Popen[str]


def kproto(*words: str) -> subprocess.CompletedProcess[str]:
    """Run kproto to its end."""
    with kproto_started(*words) as process:
        out, err = process.communicate(timeout=LIMIT_S)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


@contextmanager
def kproto_started(*words: str) -> Iterator[Process]:
    """kproto as a running process without a terminal; ended the hard way, with its command, if it has not by itself."""
    process = subprocess.Popen(
        [*KPROTO, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LIMIT_S)


def line_of(process: Process) -> str:
    """The next line of its standard output."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"no more output; standard error: {process.communicate(timeout=LIMIT_S)[1]}"
    return line.rstrip("\n")


def python(program: str) -> tuple[str, ...]:
    """A command that runs a program's text."""
    return (sys.executable, "-c", program)


OLD_CLIENT = (sys.executable, str(HERE / "old_client.py"))
"""Sends what a client before ApiVersions does: ListOffsets v0 and Metadata v0."""
