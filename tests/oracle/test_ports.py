"""Ports for servers of tests and measurements."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle import ports
from tests.oracle.ports import HOST, PORTS, free_port

EPHEMERAL_FROM = 32_768
"""Linux's default."""
ROOT = Path(__file__).parents[2]
PRINT_SOME = "from tests.oracle.ports import free_port\nfor _ in range(100): print(free_port())"


@pytest.fixture
def last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new file for the last port, used by this test only."""
    file = tmp_path / "cache" / "last-port"
    monkeypatch.setattr(ports, "LAST", file)
    return file


def test_a_free_port_is_not_ephemeral_and_can_be_bound() -> None:
    port = free_port()
    assert port in PORTS
    assert 1024 <= PORTS.start < PORTS.stop <= EPHEMERAL_FROM
    with socket.socket() as listener:
        listener.bind((HOST, port))


def test_a_port_in_use_is_not_returned(last: Path) -> None:
    before = free_port()
    with socket.socket() as listener:
        taken = free_port()
        listener.bind((HOST, taken))
        last.write_text(str(before))
        assert free_port() not in (before, taken)


def test_the_first_port_follows_the_last(last: Path) -> None:
    free_port()
    last.write_text(str(PORTS[-1]))
    assert free_port() - PORTS.start in range(100)


def test_processes_get_different_ports() -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", PRINT_SOME], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(3)
    ]
    returned = [line for process in processes for line in process.communicate()[0].splitlines()]
    assert len(returned) == 300
    assert len(set(returned)) == 300
