"""The process of a client under test ends with all that it has started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kproto_server.broker.broker import Broker
from kproto_server.client_process import client_process
from tests.commandline.commands import is_running
from tests.waiting import wait_until

CLIENT = """
import os, pathlib, signal, sys, time
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
path = pathlib.Path(sys.argv[1])
path.with_suffix(".partial").write_text(str(os.getpid()))
path.with_suffix(".partial").rename(path)
time.sleep(600)
"""


@pytest.mark.parametrize("hearing", ["hears", "deaf"])
def test_the_client_of_a_shell_ends_with_it(hearing: str, tmp_path: Path) -> None:
    """A shell ends at SIGTERM and does not pass the signal on."""
    program, path = tmp_path / "client.py", tmp_path / "pid"
    program.write_text(CLIENT)
    command = ["sh", "-c", f"{sys.executable} {program} {path} {hearing}; true"]
    with Broker.running() as broker, client_process(command, broker, {}):
        wait_until(path.exists, "the client")
        pid = int(path.read_text())
        assert is_running(pid)
    wait_until(lambda: not is_running(pid), "the end of the client")
