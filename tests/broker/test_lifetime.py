"""A broker inside a user's process starts once and ends once, after every error, and leaves no thread behind."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import anyio
import pytest

from kproto_server.broker.broker import Broker
from kproto_server.clock import Clock, PeriodicTask
from kproto_server.network.listening import CannotListen, open_sockets
from tests.network.raw_client import RawClient
from tests.network.requests import create_topic, topic_names
from tests.waiting import LIMIT_S

BROKER_THREAD = "kproto-broker"


class Threads:
    """The broker threads that a test started; fixtures of a longer scope may have brokers in this process too."""

    def __init__(self) -> None:
        self._others = self._all()

    def running(self) -> set[threading.Thread]:
        return self._all() - self._others

    @staticmethod
    def _all() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == BROKER_THREAD}


@pytest.fixture(autouse=True)
def threads() -> Iterator[Threads]:
    """Check that the test leaves no broker thread behind."""
    threads = Threads()
    yield threads
    assert not threads.running()


def fail(*_: object) -> None:
    raise ZeroDivisionError("a defect")


def test_a_running_broker_is_not_started_again() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        with pytest.raises(RuntimeError, match="this broker is running already"):
            broker.start()
        assert topic_names(client) == set()


def test_a_stopped_broker_starts_again_without_its_topics() -> None:
    broker = Broker()
    for _ in range(2):
        with broker, RawClient(broker.bootstrap_servers) as client:
            assert topic_names(client) == set()
            create_topic(client)


CALLS: dict[str, Callable[[Broker], object]] = {
    "bootstrap_servers": lambda broker: broker.bootstrap_servers,
    "observations": lambda broker: broker.observations,
    "snapshot": lambda broker: broker.snapshot(),
    "reset": lambda broker: broker.reset(),
    "stop_node": lambda broker: broker.stop_node(1),
    "start_node": lambda broker: broker.start_node(1),
    "clock.now_ms": lambda broker: broker.clock.now_ms(),
    "clock.advance": lambda broker: broker.clock.advance(days=1),
    "groups.state": lambda broker: broker.groups.state("g"),
    "groups.members": lambda broker: broker.groups.members("g"),
    "groups.committed": lambda broker: broker.groups.committed("g"),
    "groups.lag": lambda broker: broker.groups.lag("g"),
    "requests": lambda broker: list(broker.requests),
    "requests.where": lambda broker: broker.requests.where(),
    "requests.dropped": lambda broker: broker.requests.dropped,
    "requests.clear": lambda broker: broker.requests.clear(),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_raise_runtime_error_while_the_broker_is_not_running(name: str) -> None:
    broker = Broker()
    with pytest.raises(RuntimeError, match="this broker is not running"):
        CALLS[name](broker)
    with broker:
        CALLS[name](broker)
    with pytest.raises(RuntimeError, match="this broker is not running"):
        CALLS[name](broker)


def test_stop_can_be_called_at_any_time() -> None:
    broker = Broker()
    broker.stop()
    broker.start()
    broker.stop()
    broker.stop()


def test_a_taken_port_raises_cannot_listen_and_leaves_no_thread_and_no_descriptor(threads: Threads) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        descriptors = open_descriptors()
        broker = Broker(port=port)
        with pytest.raises(CannotListen, match=rf"can't listen on 127\.0\.0\.1:{port}: "):
            broker.start()
        assert not threads.running()
        assert open_descriptors() == descriptors
    with broker, RawClient(broker.bootstrap_servers) as client:
        assert topic_names(client) == set(), "it starts when the port is free"


def test_a_port_that_does_not_exist_raises_cannot_listen() -> None:
    """As that of a further listener of the last node."""
    with pytest.raises(CannotListen, match=r"can't listen on 127\.0\.0\.1:65536: ports end at 65535; "):
        open_sockets("127.0.0.1", (65536,))


def test_what_is_no_host_name_raises_cannot_listen() -> None:
    """As an argument that is not UTF-8."""
    with pytest.raises(CannotListen, match=r"can't listen on .*: it is no host name; "):
        Broker(host="\udcff").start()


def test_a_failure_at_start_is_raised_and_leaves_no_thread_and_no_descriptor(
    threads: Threads, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker():
        pass  # the first start imports modules, some of which keep descriptors
    descriptors = open_descriptors()

    monkeypatch.setattr("kproto_server.network.nodes.NodeListener", fail)
    with pytest.raises(RuntimeError, match="this broker failed") as failure, caplog.at_level(logging.CRITICAL + 1):
        Broker().start()

    assert failure.value.__cause__ is not None
    assert not threads.running()
    assert open_descriptors() == descriptors


def test_a_defect_in_a_timer_is_logged_and_ends_neither_the_broker_nor_the_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As in Kafka's scheduler: what runs periodically runs again, and other timers are not late."""
    runs: list[int] = []

    def run(now_ms: int) -> None:
        runs.append(now_ms)
        fail()

    with Broker(clock="manual") as broker:
        broker._call(lambda server: PeriodicTask(server.loop.clock, 1000, run).start())
        for _ in range(2):
            broker.clock.advance(milliseconds=1000)
    assert len(runs) == 2
    assert [one.message for one in caplog.records if one.exc_info] == ["timer"] * 2


def test_an_error_in_the_event_loop_is_raised_by_the_next_call_and_by_stop(
    threads: Threads, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A call does not wait forever for a thread that has ended."""

    def fail_here(clock: Clock, first_timers: float) -> None:
        if threading.current_thread() is thread:
            fail()
        run_due(clock, first_timers)

    run_due = Clock.run_due
    broker = Broker()
    broker.start()
    (thread,) = threads.running()
    with caplog.at_level(logging.CRITICAL + 1):
        monkeypatch.setattr(Clock, "run_due", fail_here)
        with suppress(RuntimeError):  # the error may come before or after the call returns
            broker.clock.now_ms()
        thread.join(LIMIT_S)
        with pytest.raises(RuntimeError, match="this broker failed"):
            broker.clock.now_ms()
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="this broker failed") as failure:
        broker.stop()

    assert isinstance(failure.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_an_exception_in_the_block_passes_and_stops_the_broker(threads: Threads, error: type[BaseException]) -> None:
    with pytest.raises(error), Broker.running():
        raise error
    assert not threads.running()


def test_ctrl_c_stops_the_broker(threads: Threads) -> None:
    with pytest.raises(KeyboardInterrupt), Broker.running():
        signal.raise_signal(signal.SIGINT)
    assert not threads.running()


def test_ctrl_c_during_the_start_leaves_no_thread(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    def start_and_interrupt(thread: threading.Thread) -> None:
        start(thread)
        if thread.name == BROKER_THREAD:
            raise KeyboardInterrupt

    start = threading.Thread.start
    monkeypatch.setattr("threading.Thread.start", start_and_interrupt)
    broker = Broker()
    with pytest.raises(KeyboardInterrupt):
        broker.start()
    monkeypatch.undo()

    assert not threads.running()
    with broker:
        assert broker.clock.now_ms() > 0


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_a_cancelled_task_stops_its_broker(backend: str) -> None:
    async def main() -> None:
        with anyio.move_on_after(0.2) as scope:
            async with Broker():
                await anyio.sleep_forever()
        assert scope.cancelled_caught

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_a_task_that_is_cancelled_before_the_broker_is_up_leaves_no_broker(backend: str) -> None:
    async def main() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with Broker():
                await anyio.sleep_forever()

    anyio.run(main, backend=backend)


def open_descriptors() -> int:
    """Count the descriptors of this process, but those of objects that former tests left to the garbage collector."""
    gc.collect()
    return len(os.listdir("/dev/fd"))


FIFTY_STARTS = """
import os, threading
from kproto_server.broker.broker import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import topic_names

def start_once():
    with Broker(brokers=2, started=1) as broker, RawClient(broker.bootstrap_servers) as client:
        topic_names(client)

start_once()
print(len(os.listdir("/dev/fd")), threading.active_count())
for _ in range(50):
    start_once()
print(len(os.listdir("/dev/fd")), threading.active_count())
"""


def test_fifty_starts_leave_no_descriptors_and_no_threads() -> None:
    """In a process of their own: in this one, clients of former tests may still be closing."""
    command = [sys.executable, "-c", FIFTY_STARTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    before, after = [[int(count) for count in line.split()] for line in done.stdout.splitlines()]
    assert after[0] == before[0]
    # trio keeps idle worker threads for ten seconds to use them again: their number is bounded, not zero.
    assert after[1] <= before[1] + 2
