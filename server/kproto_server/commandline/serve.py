"""`kproto serve`: a broker that stays until it is told to end.

The sockets listen before anything heavy is imported (D14): a client that connects at once waits in the backlog for the
tenth of a second that trio takes. SIGTERM and SIGINT are held back from the first line on and delivered to trio, so
that whenever they come the end is orderly: drain, answer what was read, exit 0.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kproto_server.commandline.output import tell
from kproto_server.network.listening import listen, reserve

if TYPE_CHECKING:
    import socket

    from kproto_server.commandline.options import ServeOptions
    from kproto_server.network.server import Server

ENDS = (signal.SIGTERM, signal.SIGINT)


class CannotListen(Exception):
    """An address that can't be had; the text is one line for the user."""


def open_sockets(host: str, ports: tuple[int, ...], started: int | None = None) -> list[socket.socket]:
    """Return a socket a port: the first ``started`` (all) listen, the others only hold their addresses.

    Raises:
        CannotListen: with what to do.
    """
    sockets: list[socket.socket] = []
    try:
        for number, port in enumerate(ports):
            open_socket = listen if started is None or number < started else reserve
            sockets.append(open_socket(host, port))
    except OSError as error:
        for sock in sockets:
            sock.close()
        raise CannotListen(
            f"can't listen on {host}:{port}: {error.strerror or error}; choose another --host or --port (0: a free one)"
        ) from None
    return sockets


def serve(options: ServeOptions) -> int:
    """Run a broker until SIGTERM or SIGINT; return the exit code.

    Raises:
        CannotListen: an address is taken.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    sockets = open_sockets(options.host, options.ports)
    addresses = [f"{bracketed(options.host)}:{sock.getsockname()[1]}" for sock in sockets]
    for address in addresses:
        tell(sys.stdout, f"kproto: listening on {address}\n")
    if options.port_file is not None:
        _write_at_once(Path(options.port_file), "".join(f"{address}\n" for address in addresses))

    if options.data is not None:
        _tell_progress()

    from kproto_server.broker.assembly import assemble
    from kproto_server.network.busy_poll import looks_worth

    host, server = assemble(
        sockets,
        advertised_host=options.host,
        kafka_version=options.kafka_version,
        settings=options.settings,
        clock_mode=options.clock,
        data=options.data,
    )
    for line in server.state.notes():
        tell(sys.stderr, f"kproto: {line}\n")
    _spare_the_old()
    host.lookout.looks = looks_worth()
    node_sockets = dict(zip(server.state.cluster.nodes, sockets, strict=True))
    host.run(lambda: _until_told(server, node_sockets))
    return 0


def _spare_the_old() -> None:
    """Have the garbage collector look at what is young. What lives long here are groups, which no cycle keeps alive;
    going through a million of them stops the loop for 200 ms."""
    import gc

    gc.freeze()
    gc.set_threshold(10_000, 10, 1_000)


def _tell_progress() -> None:
    """Have what the log tells of itself (recovery, loading, compaction) come to standard error."""
    import logging

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("kproto: %(message)s"))
    log = logging.getLogger("kproto.log")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def _write_at_once(path: Path, text: str) -> None:
    """Write a file that nobody sees half written: who waits for it reads it as soon as it is there."""
    if path.exists() and not path.is_file():  # a pipe, or another process's file descriptor
        path.write_text(text)
        return
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)


def bracketed(host: str) -> str:
    """Return a host as it stands before a colon and a port."""
    return f"[{host}]" if ":" in host else host


async def _until_told(server: Server, sockets: dict[int, socket.socket]) -> None:
    """Serve until a signal ends it. Further ones change nothing: wrappers pass on what the terminal sends as well."""
    import trio

    with trio.open_signal_receiver(*ENDS) as signals:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)

        async def wait_told() -> None:
            async for _ in signals:
                server.stop()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_told)
            await server.main(sockets, lambda: None)
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
            nursery.cancel_scope.cancel()
