"""`kproto serve` prints its addresses, writes the port file and ends on a signal.

Method. Each test starts `kproto serve` as a process.
"""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import pytest

from tests.commandline.commands import LIMIT_S, kproto, kproto_started, line_of

LISTENING = re.compile(r"kproto: listening on (127\.0\.0\.1):([0-9]+)")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_prints_its_address_and_a_signal_ends_it(number: signal.Signals) -> None:
    with kproto_started("serve", "--port", "0") as process:
        found = LISTENING.fullmatch(line_of(process))
        assert found is not None
        with socket.create_connection((found[1], int(found[2]))) as connection:
            connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))  # ApiVersions v0
            assert connection.recv(8)[4:] == b"\0\0\0\1"
        process.send_signal(number)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0


def test_each_broker_has_a_line_in_the_output_and_in_the_port_file(tmp_path: Path) -> None:
    port_file = tmp_path / "ports"
    with kproto_started("serve", "--port", "0", "--brokers", "3", "--port-file", str(port_file)) as process:
        lines = [LISTENING.fullmatch(line_of(process)) for _ in range(3)]
        addresses = [f"{found[1]}:{found[2]}" for found in lines if found]
        assert len(set(addresses)) == 3
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
    assert port_file.read_text().split() == addresses


def test_a_taken_port_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        done = kproto("serve", "--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"kproto serve: can't listen on 127.0.0.1:{port}: Address already in use; "
        "choose another --host or --port (0: a free one)\n"
    )


def test_an_address_of_another_host_is_one_line() -> None:
    done = kproto("serve", "--host", "192.0.2.7", "--port", "0")
    assert done.returncode == 2
    assert done.stderr.startswith("kproto serve: can't listen on 192.0.2.7:0: ")
    assert done.stderr.count("\n") == 1
