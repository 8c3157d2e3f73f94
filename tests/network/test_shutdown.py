"""Clean shutdown: the broker responds to all requests that it has read, truncates no response, and exits with 0.

Method: clients send requests in several ways; `kproto serve` receives a signal, or a broker in this process is stopped.
Each client then reads to the end of its connection: the correlation ids must be those of its first requests, without a
gap, in whole frames.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from kproto.messages.k09_offset_fetch import OffsetFetchRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k49_alter_client_quotas import AlterClientQuotasRequest
from kproto_server import DataDirectory
from kproto_server.broker.broker import Broker
from kproto_server.network.listening import reserve
from kproto_server.network.node_listener import NodeListener
from kproto_server.network.server import Server
from kproto_server.network.shutdown import DELIVER_S, RESPOND_S, finish
from tests.commandline.commands import LIMIT_S, Process, kproto_started, line_of
from tests.coordinator.broker_state import Offsets, commit_request
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, create_topic, long_poll
from tests.security.quota_scripts import entry
from tests.waiting import wait_until

GROUPS = (ListGroupsRequest(), 0)
COMMIT = (commit_request("g", {"t": {0: 7}}), 2)
CLIENTS = 4
IN_FLIGHT = 50


@pytest.fixture
def without_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker in this process responds to everything that has arrived, however slow the machine is."""
    monkeypatch.setattr("kproto_server.network.shutdown.RESPOND_S", LIMIT_S)


both_signals = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


@contextmanager
def serving(*flags: str) -> Iterator[tuple[Process, str]]:
    with kproto_started("serve", "--port", "0", *flags) as process:
        address = line_of(process).removeprefix("kproto: listening on ")
        with RawClient(address) as client:
            assert commit_offset(client) == 0
        yield process, address


def end(process: Process, number: int = signal.SIGTERM) -> None:
    """Send a signal; the process must exit with 0, without a traceback.

    `test_a_shutdown_takes_half_a_second` has the time that it may take; on a busy machine a process takes any.
    """
    process.send_signal(number)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


class BusyClient(threading.Thread):
    """Sends commits, many of them in flight, until the connection ends."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.client = RawClient(address)
        self.received: list[int] = []
        self.sent = 0

    def run(self) -> None:
        with self.client as client:
            try:
                self.sent += len(client.send(*[COMMIT] * IN_FLIGHT))
                while True:
                    self.received += client.read_ids(1)
                    self.sent += len(client.send(COMMIT))
            except ConnectionError:
                self.received += client.read_ids_to_the_end()


@both_signals
def test_responses_under_load_are_whole_and_in_order(number: signal.Signals) -> None:
    with serving() as (process, address):
        clients = [BusyClient(address) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        wait_until(lambda: all(len(client.received) > 500 for client in clients), "load")
        end(process, number)
        for client in clients:
            client.join(LIMIT_S)

    for client in clients:
        assert client.received == list(range(1, len(client.received) + 1))
        assert client.sent >= len(client.received) > 500


def test_requests_sent_before_the_signal_get_responses() -> None:
    """They are in the buffer of the socket when the signal arrives."""
    with serving() as (process, address), RawClient(address) as client:
        sent = client.send(*[COMMIT] * 500)
        end(process)
        assert client.read_ids_to_the_end() == sent


def test_delayed_operations_complete_at_the_shutdown(without_time_limit: None) -> None:
    with Broker.running() as broker, RawClient(broker.bootstrap_servers) as client:
        assert commit_offset(client) == 0
        sent = client.send(*[(long_poll(60_000), 4), GROUPS] * 20)
        with stopping(broker):
            assert client.read_ids_to_the_end() == sent


class SlowTransport:
    """A connection whose client takes no response; it counts what the shutdown does with it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def finish(self) -> None:
        self.calls.append("finish")

    def drop_backlog(self) -> None:
        self.calls.append("drop_backlog")

    def close_if_delivered(self) -> None:
        """It is not delivered."""


def test_a_shutdown_takes_half_a_second() -> None:
    """By a virtual clock: the time that the broker waits for clients that take no responses."""
    socket = reserve("127.0.0.1", 0)
    loop, server = Broker()._assemble([socket])
    listener = server.nodes.listeners[1] = NodeListener(server.state.cluster.nodes[1], {"": socket})
    slow = SlowTransport()
    listener.transports.add(slow)  # type: ignore[arg-type]  # has the methods that are called

    async def elapsed_s() -> float:
        started = trio.current_time()
        await finish(server.nodes.listeners.values(), None, server.drain)
        return trio.current_time() - started

    try:
        assert trio.run(elapsed_s, clock=MockClock(autojump_threshold=0)) == pytest.approx(RESPOND_S + DELIVER_S)
        assert slow.calls == ["finish", "drop_backlog"]
    finally:
        loop.poller.close()
        socket.close()


PARTITIONS = 100
MUCH: Offsets = {"t": {number: (number, "x" * 1000) for number in range(PARTITIONS)}}
ALL_OFFSETS = (OffsetFetchRequest(group_id="much", topics=None), 3)
"""Its response has 100 kB."""


@contextmanager
def stopping(broker: Broker) -> Iterator[None]:
    """Stop a broker in another thread, and wait at the end of the block until it has ended."""
    thread = threading.Thread(target=broker.stop)
    thread.start()
    yield
    thread.join(LIMIT_S)
    assert not thread.is_alive()


@contextmanager
def broker_with_much() -> Iterator[tuple[Broker, RawClient]]:
    """A broker with offsets of 100 kB, and a client whose socket buffer holds 4 kB."""
    with Broker.running(settings={"num.partitions": PARTITIONS}) as broker:
        with RawClient(broker.bootstrap_servers) as other:
            assert commit_offset(other) == 0
        with RawClient(broker.bootstrap_servers, receive_buffer_bytes=4096) as client:
            client.ask(commit_request("much", MUCH), 2)
            yield broker, client


def test_a_client_with_a_small_buffer_receives_all_responses_before_the_broker_ends(without_time_limit: None) -> None:
    """The broker waits for the client, here without a limit of time: the client may be slow."""
    with broker_with_much() as (broker, client):
        sent = client.send(*[ALL_OFFSETS] * 80)
        with stopping(broker):
            assert client.read_ids_to_the_end() == sent


class Flood(threading.Thread):
    """Sends requests until the broker closes the connection."""

    def __init__(self, client: RawClient) -> None:
        super().__init__()
        self.socket = client.socket
        self.frames = b"".join(client.frame(*ALL_OFFSETS, number) for number in range(20_000))
        """Their responses have 2 GB."""

    def run(self) -> None:
        try:
            while True:
                self.socket.sendall(self.frames)
        except OSError:
            return


def test_unread_requests_do_not_truncate_a_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that is closed with unread bytes resets the connection, and the kernel drops what it has not sent.

    There are more requests than the broker handles in `RESPOND_S`. For the responses that were made it waits without a
    limit of time here: the client may be slow.
    """
    monkeypatch.setattr("kproto_server.network.shutdown.DELIVER_S", LIMIT_S)
    with broker_with_much() as (broker, client):
        flood = Flood(client)
        flood.start()
        received = client.read_ids(3)
        with stopping(broker):
            received += client.read_ids_to_the_end()
        assert received == list(range(len(received)))
        flood.join(LIMIT_S)


def test_a_client_that_reads_nothing_does_not_delay_the_exit() -> None:
    with (
        serving("--set", f"num.partitions={PARTITIONS}") as (process, address),
        RawClient(address, receive_buffer_bytes=4096) as client,
    ):
        client.ask(commit_request("much", MUCH), 2)
        client.send(*[ALL_OFFSETS] * 100)
        client.read_ids(1)
        end(process)


@both_signals
def test_a_second_signal_changes_nothing(number: signal.Signals) -> None:
    """Ctrl-C sends one signal from the terminal, and a wrapper may forward another one."""
    with (
        serving("--set", f"num.partitions={PARTITIONS}") as (process, address),
        RawClient(address, receive_buffer_bytes=4096) as client,
    ):
        client.ask(commit_request("much", MUCH), 2)
        client.send(*[ALL_OFFSETS] * 100)  # delays the exit for half a second
        client.read_ids(1)
        process.send_signal(number)
        wait_until(lambda: not listens(address), "the end of listening")
        end(process, number)


def listens(address: str) -> bool:
    try:
        RawClient(address).socket.close()
    except ConnectionError:
        return False
    return True


def test_a_signal_right_after_the_first_line_is_a_clean_shutdown() -> None:
    """trio is not imported yet."""
    with kproto_started("serve", "--port", "0") as process:
        line_of(process)
        end(process)


def test_two_processes_are_independent() -> None:
    with serving() as (first, one), serving() as (second, two), RawClient(two) as client:
        assert one != two
        end(first)
        assert [group.group_id for group in client.ask(*GROUPS).groups] == ["g"]
        with RawClient(two) as other:
            create_topic(other, "u")
        end(second)


def test_a_broker_in_this_process_shuts_down_cleanly(without_time_limit: None) -> None:
    broker = Broker()
    broker.start()
    with RawClient(broker.bootstrap_servers) as idle, RawClient(broker.bootstrap_servers) as client:
        commit_offset(client)
        client.ask(*GROUPS)
        idle.ask(*GROUPS)
        sent = client.send(*[COMMIT] * 200, (long_poll(60_000), 4), COMMIT)
        broker.stop()
        assert client.read_ids_to_the_end() == sent
        idle.wait_closed()


def test_nodes_stop_listening_before_the_tasks_of_their_connections_end() -> None:
    """A connection that has to wait needs a task: in an iteration between the two the broker would fail."""
    listening: list[int] = []

    async def observe(server: Server) -> None:
        """Note what listens when the shutdown begins. Cancellation: is what it waits for."""
        try:
            await trio.sleep_forever()
        finally:
            listening.append(sum(len(listener.listening) for listener in server.nodes.listeners.values()))

    with Broker.running(brokers=2) as broker:
        broker.run(lambda server: server.start_task(observe))
    assert listening == [0]


def test_a_commit_that_a_quota_measures_gets_its_response(tmp_path: Path, without_time_limit: None) -> None:
    """It waits for the log, and has no deadline that the shutdown could bring forward."""
    quota = entry({"client-id": "app"}, ("request_percentage", 1000.0))
    data = DataDirectory(str(tmp_path), "fsync")
    with Broker.running(data=data) as broker, RawClient(broker.bootstrap_servers, client_id="app") as client:
        assert commit_offset(client) == 0
        client.ask(AlterClientQuotasRequest(entries=(quota,), validate_only=False), 0)

        def stop(server: Server) -> None:
            client.send(COMMIT)
            server.stop()

        broker.run(stop)
        assert len(client.read_ids_to_the_end()) == 1
