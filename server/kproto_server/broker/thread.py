"""The thread that owns a broker's state, and how the parts of `Broker` reach it."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

from kproto.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kproto_server.network.event_loop import EventLoop
    from kproto_server.network.node_listener import NodeSockets
    from kproto_server.network.server import Server

T = TypeVar("T")

logger = logging.getLogger("kproto")

THREAD_CHECK_S = 0.1
"""How often a caller that waits for the broker's thread checks that the thread is alive."""
NOT_RUNNING = "this broker is not running"


class RunInBrokerThread(Protocol):
    """Runs an action in the broker's thread, between two requests, and returns its result.

    Raises:
        RuntimeError: the broker does not run.
    """

    def __call__(self, action: Callable[[Server], T], /) -> T: ...


def run_in_turns(run: RunInBrokerThread, steps: Callable[[Server], Generator[object, None, T]]) -> T:
    """Run a computation in the broker's thread, each of its steps in a turn of its own; return its result.

    Clients are served between two steps, and may change what the computation looks at.

    Raises:
        RuntimeError: the broker does not run.
    """
    begun: list[Generator[object, None, T]] = []

    def turn(server: Server) -> tuple[T] | None:
        if not begun:
            begun.append(steps(server))
        try:
            next(begun[0])
        except StopIteration as end:
            return (end.value,)
        return None

    while (result := run(turn)) is None:
        pass
    return result[0]


class BrokerThread:
    """The thread of a broker that runs, or has failed; `stop` ends it.

    Owns the sockets from `start` on: the server closes them.
    """

    def __init__(self, loop: EventLoop, server: Server, sockets: dict[int, NodeSockets]) -> None:
        self.problem: UsageError | None = None
        """Why the broker refuses its seed. It serves without it."""
        self._server = server
        self._failure: BaseException | None = None
        """The exception that ended the thread; None: it runs, or `stop` ended it."""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(loop, sockets), name="kproto-broker", daemon=True)

    def start(self) -> None:
        """Return when every started node responds, or the thread has failed, also before a KeyboardInterrupt."""
        try:
            self._thread.start()
            self._ready.wait()
        except KeyboardInterrupt:
            self._ready.wait()
            raise

    def _run(self, loop: EventLoop, sockets: dict[int, NodeSockets]) -> None:
        try:
            loop.run(lambda: self._server.main(sockets, self._fill))
        except BaseException as error:  # raised again by the next call from a user's thread
            logger.exception("the broker has failed")
            self._failure = error
        finally:
            self._ready.set()

    def _fill(self) -> None:
        try:
            self._server.fill()
        except UsageError as error:
            self.problem = error
        self._ready.set()

    @property
    def is_running(self) -> bool:
        """Whether the thread has neither ended nor failed."""
        return self._thread.is_alive() and self._failure is None

    @property
    def is_current(self) -> bool:
        """Whether the caller is in this thread."""
        return self._thread is threading.current_thread()

    def stop(self) -> None:
        """Respond to the requests already read, close every connection and end the thread.

        Raises:
            RuntimeError: it had failed.
        """
        with suppress(RuntimeError):  # the thread has ended by itself
            self._post(self._server.stop)
        self._thread.join()
        if self._failure is not None:
            raise RuntimeError("this broker failed") from self._failure

    def call(self, action: Callable[[Server], T]) -> T:
        """Run an action in the thread and return its result (`RunInBrokerThread`)."""
        server = self.running_server()
        done = threading.Event()
        result: list[T] = []
        failure: list[BaseException] = []

        def run() -> None:
            try:
                result.append(action(server))
            except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
                failure.append(error)
            finally:
                done.set()

        self._post(run)
        while not done.wait(THREAD_CHECK_S):
            self.running_server()
        if failure:
            raise failure[0]
        return result[0]

    def running_server(self) -> Server:
        """Return the server.

        Raises:
            RuntimeError: the thread has failed or ended.
        """
        if self._failure is not None:
            raise RuntimeError("this broker failed") from self._failure
        if not self._thread.is_alive():
            raise RuntimeError(NOT_RUNNING)
        return self._server

    def _post(self, action: Callable[[], object]) -> None:
        """Schedule an action in the thread, between two requests.

        Raises:
            RuntimeError: the thread has ended.
        """
        if self._server.token is None:
            raise RuntimeError(NOT_RUNNING)
        try:
            self._server.token.run_sync_soon(action)
        except RuntimeError:  # trio's error for a run that has ended
            self._thread.join()
            self.running_server()
            raise
