"""Start and stop of a measured server, with small programs in its place."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from bench.model import BenchError, Missing
from bench.peers.durability import AS_ASKED, Durability
from bench.peers.fleet import Fleet, Target
from bench.peers.server import DEFAULTS, Launch, Server, launches, started, wait_until_listening
from tests.oracle.ports import free_port

PRINTS_ITS_PORT = """
import signal, socket
with socket.create_server(("127.0.0.1", 0)) as listener:
    print("server: listening on 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
    listener.accept()[0].close()
    signal.pause()
"""


def python(program: str, port: int | None = None) -> Launch:
    return Launch(version="0", argv=[sys.executable, "-c", program], port=port)


def test_a_server_that_prints_its_port_is_found_there_and_ended_on_leaving() -> None:
    with started(python(PRINTS_ITS_PORT)) as server:
        wait_until_listening(server)
        os.kill(server.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_the_error_of_a_server_that_ends_at_once_has_its_last_line() -> None:
    with pytest.raises(BenchError, match="printed no port: no disk left"), started(python("exit('no disk left')")):
        pass


def test_a_server_that_ends_during_the_measurement_is_an_error() -> None:
    program = "import sys; print('a:1', flush=True); sys.exit('out of memory')"
    with pytest.raises(BenchError, match="ended with 1: out of memory"), started(python(program)) as server:
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)


def test_the_error_of_a_server_that_ends_before_it_listens_has_its_last_line() -> None:
    server = Server(python("import sys; sys.exit('port taken')", port=free_port()))
    with pytest.raises(BenchError, match="ended with 1: port taken"):
        wait_until_listening(server)
    server.stop()


def test_a_killed_server_ends_without_cleaning_up(tmp_path: Path) -> None:
    mark = tmp_path / "finished"
    program = f"import atexit, pathlib; atexit.register(pathlib.Path({str(mark)!r}).touch)" + PRINTS_ITS_PORT
    server = Server(python(program))
    server.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)
    assert not mark.exists()


class Fake:
    def __init__(self, name: str, lacks: str | None = None, beside: Mapping[Durability, Durability] = AS_ASKED) -> None:
        self.name = name
        self.lacks = lacks
        self.beside = beside

    @contextmanager
    def ready(
        self, partitions: Sequence[int], durability: Durability = "memory", settings: Mapping[str, str] = DEFAULTS
    ) -> Iterator[Launch]:
        if self.lacks:
            raise Missing(self.lacks)
        yield Launch(version="1.2", argv=[sys.executable, "-c", PRINTS_ITS_PORT, *map(str, partitions)])


def test_each_selected_peer_is_prepared_or_noted_as_missing() -> None:
    notes: list[str] = []
    peers = [Fake("a"), Fake("b", lacks="no `b` on the PATH"), Fake("c")]
    with ExitStack() as stack:
        made = dict(launches(peers, ["a", "b"], notes.append, stack, partitions=[10]))
    assert [(name, launch.argv[-1]) for name, launch in made.items()] == [("a", "10")]
    assert notes == ["a 1.2", "b left out: no `b` on the PATH"]


def test_a_server_in_two_rows_is_started_once() -> None:
    notes: list[str] = []
    peers = [
        Fake("a"),
        Fake("b", beside={"memory": "os", "os": "os"}),
        Fake("c", beside={"memory": "memory"}),
        Fake("d", lacks="no `d` on the PATH"),
    ]
    with ExitStack() as stack:
        fleet = Fleet(stack, notes.append)
        fleet.start(peers, ["memory", "os"], [10])
        assert set(fleet.servers) == {("a", "memory"), ("a", "os"), ("b", "os"), ("c", "memory")}
    assert fleet.rows == {"memory": [("a", "memory"), ("b", "os"), ("c", "memory")], "os": [("a", "os"), ("b", "os")]}
    assert notes.count("b (os) 1.2") == 1
    assert notes.count("d (memory) left out: no `d` on the PATH") == 1
    figures: dict[Target, dict[str, float]] = {Target("a", "os"): {"ms": 1.0}, Target("b", "os"): {"ms": 2.0}}
    assert fleet.row("memory", figures) == {"b": {"ms": 2.0}}
    assert fleet.row("os", figures) == {"a": {"ms": 1.0}, "b": {"ms": 2.0}}
