"""kproto works when its standard output or error refuses writes: a closed pipe, a full disk, a closed stream.

A broker does not wait for a pipe that is not read.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.commandline.commands import KPROTO, LIMIT_S, kproto_started, line_of, python
from tests.network.raw_client import RawClient
from tests.network.requests import topic_names
from tests.waiting import wait_until

FULL = Path("/dev/full")


def without(stream: int, ending: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run kproto with one standard stream that refuses all writes."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    sink = os.open(FULL, os.O_WRONLY) if ending == "full" else write_end

    def prepare() -> None:
        os.dup2(sink, stream)
        if ending == "closed":
            os.close(stream)

    try:
        return subprocess.run(
            [*KPROTO, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            preexec_fn=prepare,
            timeout=LIMIT_S,
            check=False,
        )
    finally:
        os.close(write_end)
        if sink != write_end:
            os.close(sink)


endings = pytest.mark.parametrize(
    "ending",
    [
        "unread",
        "closed",
        pytest.param("full", marks=pytest.mark.skipif(not FULL.exists(), reason="/dev/full is Linux's")),
    ],
)


@endings
@pytest.mark.parametrize("words", [("--help",), ("--version",), ("serve", "--help")])
def test_help_that_cannot_be_written_causes_no_traceback(words: tuple[str, ...], ending: str) -> None:
    done = without(1, ending, *words)
    assert (done.returncode, done.stderr) == (0, b"")


@endings
def test_a_mistake_that_cannot_be_reported_keeps_its_exit_code(ending: str) -> None:
    assert without(2, ending, "serve", "--port", "x").returncode == 2


@endings
@pytest.mark.parametrize("exit_code", [0, 7])
def test_a_report_that_cannot_be_written_leaves_the_commands_exit_code(ending: str, exit_code: int) -> None:
    assert without(2, ending, "run", "--", *python(f"raise SystemExit({exit_code})")).returncode == exit_code


def test_a_broker_serves_when_its_first_line_cannot_be_written(tmp_path: Path) -> None:
    """This happens with ``kproto serve | head -1``."""
    port_file = tmp_path / "ports"
    with kproto_started("serve", "--port", "0", "--brokers", "2", "--port-file", str(port_file)) as process:
        assert process.stdout is not None
        process.stdout.close()
        wait_until(port_file.exists, "the port file")
        with RawClient(port_file.read_text().split()[1]) as client:
            assert topic_names(client) == set()
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
        assert process.wait(LIMIT_S) == 0


PIPE_SIZE_BYTES = 1 << 16
CLOSED_LINE = b'kproto: /127.0.0.1 "": closed: '


def test_a_broker_whose_standard_error_is_not_read_serves_on() -> None:
    """Each connection that it closes is a line there; clients can cause any number of them."""
    with kproto_started("serve", "--port", "0") as process:
        address = line_of(process).removeprefix("kproto: listening on ")
        connection_count = PIPE_SIZE_BYTES // len(CLOSED_LINE) + 200
        for _ in range(connection_count):
            with RawClient(address) as client:
                client.socket.sendall(b"\xff" * 8)
                client.wait_closed()
        with RawClient(address) as client:
            assert topic_names(client) == set()
        assert process.stderr is not None
        first = process.stderr.readline()
        while "closed: " not in first:
            first = process.stderr.readline()
        with RawClient(address) as client:  # there is room again
            client.socket.sendall(b"\xff" * 8)
            client.wait_closed()
        process.send_signal(signal.SIGTERM)
        lines = process.stderr.read().splitlines()
    dropped = [int(line.split()[1]) for line in lines if "were dropped while standard error was not read" in line]
    assert len(dropped) == 1
    assert sum("closed: " in line for line in lines) + 1 + dropped[0] == connection_count + 1
