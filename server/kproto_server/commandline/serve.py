"""`kproto serve`: run a broker until SIGTERM or SIGINT.

The sockets listen before any slow import (D14): a client that connects at once waits in the backlog for the tenth of a
second that trio takes to import. SIGTERM and SIGINT are blocked from the first line on and delivered to trio later, so
that every shutdown is clean: the broker responds to the requests that it has read, then exits with 0.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kproto_server.commandline.output import write
from kproto_server.network.listening import bracketed, open_sockets

if TYPE_CHECKING:
    import socket

    from kproto_server.commandline.options import ServeOptions
    from kproto_server.network.server import Server

SHUTDOWN_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(options: ServeOptions) -> int:
    """Run a broker until SIGTERM or SIGINT; return the exit code.

    Raises:
        CannotListen: an address is in use.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SHUTDOWN_SIGNALS)
    sockets = open_sockets(options.host, options.ports)
    addresses = [f"{bracketed(options.host)}:{sock.getsockname()[1]}" for sock in sockets]
    for address in addresses:
        write(sys.stdout, f"kproto: listening on {address}\n")
    if options.port_file is not None:
        _write_atomically(Path(options.port_file), "".join(f"{address}\n" for address in addresses))

    if options.data is not None:
        _log_progress()

    from kproto_server.broker.assembly import assemble
    from kproto_server.network.busy_poll import useful_polls

    loop, server = assemble(
        sockets,
        advertised_host=options.host,
        kafka_version=options.kafka_version,
        settings=options.settings,
        clock_mode=options.clock,
        data=options.data,
    )
    for line in server.state.notes():
        write(sys.stderr, f"kproto: {line}\n")
    _freeze_garbage_collector()
    loop.busy_poll.polls = useful_polls()
    node_sockets = dict(zip(server.state.cluster.nodes, sockets, strict=True))
    loop.run(lambda: _serve_until_signal(server, node_sockets))
    return 0


def _freeze_garbage_collector() -> None:
    """Make full garbage collections rare.

    Long-lived objects here are groups, which are in no reference cycle. A full collection over a million of them stops
    the event loop for 200 ms.
    """
    import gc

    gc.freeze()
    gc.set_threshold(10_000, 10, 1_000)


def _log_progress() -> None:
    """Print the progress of recovery, loading and compaction on standard error."""
    import logging

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("kproto: %(message)s"))
    log = logging.getLogger("kproto.log")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def _write_atomically(path: Path, text: str) -> None:
    """Write a file by renaming, because a program that waits for it reads it as soon as it exists."""
    if path.exists() and not path.is_file():  # a pipe or a device cannot be renamed over
        path.write_text(text)
        return
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)


async def _serve_until_signal(server: Server, sockets: dict[int, socket.socket]) -> None:
    """Serve until a signal arrives; later signals change nothing, because wrappers forward Ctrl-C a second time.

    Cancellation: connections are closed without a clean shutdown.
    """
    import trio

    with trio.open_signal_receiver(*SHUTDOWN_SIGNALS) as signals:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SHUTDOWN_SIGNALS)

        async def stop_on_signal() -> None:
            async for _ in signals:
                server.stop()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop_on_signal)
            await server.main(sockets, lambda: None)
            signal.pthread_sigmask(signal.SIG_BLOCK, SHUTDOWN_SIGNALS)
            nursery.cancel_scope.cancel()
