"""`kproto serve`: run a broker until SIGTERM or SIGINT.

The sockets listen before any slow import (D14): a client that connects at once waits in the backlog for the tenth of a
second that trio takes to import. SIGTERM and SIGINT are blocked from the first line on and delivered to trio later, so
that every shutdown is clean: the broker responds to the requests that it has read, then exits with 0.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from kproto_server.commandline import output_file
from kproto_server.commandline.output import write
from kproto_server.network.listening import bracketed, open_sockets

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from kproto_server.commandline.options import ServeOptions
    from kproto_server.network.server import Server

SHUTDOWN_SIGNALS = (signal.SIGTERM, signal.SIGINT)
PARENT_CHECK_S = 0.2
NOT_WRITTEN = 2
"""Exit code if the port file could not be written."""


def serve(options: ServeOptions) -> int:
    """Run a broker until SIGTERM, SIGINT or the end of the parent; return the exit code.

    Raises:
        CannotListen: an address is in use.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SHUTDOWN_SIGNALS)
    parent = os.getppid()
    sockets = open_sockets(options.host, options.ports)
    addresses = [f"{bracketed(options.host)}:{sock.getsockname()[1]}" for sock in sockets]

    from kproto_server.broker.assembly import assemble
    from kproto_server.commandline import logs
    from kproto_server.configuration.listeners import Address
    from kproto_server.network.busy_poll import useful_polls

    broker = options.broker
    logs.configure(broker.log_level)
    advertised = Address(*(options.advertised or (options.host, 0)))
    loop, server = assemble(
        sockets,
        advertised=advertised,
        kafka_version=broker.kafka_version,
        settings=broker.settings,
        clock_mode=broker.clock,
        data=broker.data,
    )
    if not options.quiet:
        for line in server.state.notes():
            write(sys.stderr, f"kproto: {line}\n")
    _freeze_garbage_collector()
    loop.busy_poll.polls = useful_polls()
    nodes = server.state.cluster.nodes
    node_sockets = dict(zip(nodes, sockets, strict=True))
    port_file = PortFile(options.port_file, "".join(f"{address}\n" for address in addresses))

    def ready() -> None:
        if not options.quiet:
            for address, node in zip(addresses, nodes.values(), strict=True):
                shown = f"{bracketed(node.host)}:{node.port}"
                also = "" if shown == address else f"kproto: clients receive the address {shown}\n"
                write(sys.stdout, f"kproto: listening on {address}\n{also}")
        if not port_file.write():
            server.stop()

    try:
        loop.run(lambda: _serve_until_end(server, node_sockets, ready, parent if options.exit_with_parent else None))
    finally:
        port_file.remove()
    if options.report is None:
        return port_file.exit_code

    from kproto_server.commandline.reporting import report_on

    reported = report_on(server.observations, broker, options.report, "serve")
    return port_file.exit_code or reported


class PortFile:
    """The file that has the addresses of a broker while it serves."""

    def __init__(self, path: str | None, content: str) -> None:
        self._path = path
        self._content = content
        self.exit_code: int = 0
        """`NOT_WRITTEN` if it could not be written."""

    def write(self) -> bool:
        """Write the file in one rename; print the reason and return False if that is not possible."""
        try:
            if self._path is not None:
                output_file.write(self._path, self._content)
        except OSError as error:
            write(sys.stderr, f"kproto serve: --port-file: can't write {self._path!r}: {error.strerror}\n")
            self.exit_code = NOT_WRITTEN
        return not self.exit_code

    def remove(self) -> None:
        """Remove the file, unless another broker has written it since."""
        if self._path is not None:
            output_file.remove(self._path, self._content)


def _freeze_garbage_collector() -> None:
    """Make full garbage collections rare.

    Long-lived objects here are groups, which are in no reference cycle. A full collection over a million of them stops
    the event loop for 200 ms.
    """
    import gc

    gc.freeze()
    gc.set_threshold(10_000, 10, 1_000)


async def _serve_until_end(
    server: Server, sockets: dict[int, socket.socket], ready: Callable[[], None], parent: int | None
) -> None:
    """Serve until a signal arrives, or until the parent process has ended if ``parent`` is its id.

    Later signals change nothing, because wrappers forward Ctrl-C a second time.

    Cancellation: connections are closed without a clean shutdown.
    """
    import trio

    with trio.open_signal_receiver(*SHUTDOWN_SIGNALS) as signals:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SHUTDOWN_SIGNALS)

        async def stop_on_signal() -> None:
            async for _ in signals:
                server.stop()

        async def stop_with_parent() -> None:
            # The kernel's death signal (PR_SET_PDEATHSIG) is Linux's alone, and comes too early: when the thread that
            # has started this process ends.
            while os.getppid() == parent:
                await trio.sleep(PARENT_CHECK_S)
            server.stop()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop_on_signal)
            if parent is not None:
                nursery.start_soon(stop_with_parent)
            await server.main(sockets, ready)
            signal.pthread_sigmask(signal.SIG_BLOCK, SHUTDOWN_SIGNALS)
            nursery.cancel_scope.cancel()
