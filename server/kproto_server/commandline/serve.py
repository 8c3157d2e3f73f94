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

from kproto import output_file
from kproto.errors import UsageError
from kproto_server.commandline.output import write
from kproto_server.configuration.listeners import bracketed
from kproto_server.network.descriptors import raise_limit
from kproto_server.network.listening import open_sockets

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.broker.open_listeners import OpenListener
    from kproto_server.commandline.options import ServeOptions
    from kproto_server.network.node_listener import NodeSockets
    from kproto_server.network.server import Server

SHUTDOWN_SIGNALS = (signal.SIGTERM, signal.SIGINT)
PARENT_CHECK_S = 0.2
NOT_WRITTEN = 2
"""Exit code if the port file or the control file could not be written."""
REQUESTS_KEPT = 10_000
"""The number of requests that a broker with a control port keeps, from the first use of the port on."""


def serve(options: ServeOptions) -> int:
    """Run a broker until SIGTERM, SIGINT or the end of the parent; return the exit code.

    Raises:
        CannotListen: an address is in use.
        UsageError: the broker refuses a part of the seed.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SHUTDOWN_SIGNALS)
    try:
        return _serve(options)
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # the caller goes on; otherwise the process ends
        raise


def _serve(options: ServeOptions) -> int:
    raise_limit()
    parents = _parents()
    sockets = open_sockets(options.host, options.ports)
    addresses = [f"{bracketed(options.host)}:{sock.getsockname()[1]}" for sock in sockets]
    others: list[OpenListener] = []
    if options.listeners[1:]:
        from kproto_server.broker.open_listeners import open_listeners

        others = open_listeners(options.listeners[1:], len(sockets))
    control = None
    if options.control is not None:
        from kproto_server.control.listening import open_port

        control = open_port(options.control.host, options.control.port)

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
        main_listener=_main_listener(options),
        others=others,
        kafka_version=broker.kafka_version,
        settings=broker.settings,
        clock_mode=broker.clock,
        data=broker.data,
        requests_kept=REQUESTS_KEPT if control is not None else 0,
        keeps_from_start=False,
    )
    security = None
    try:
        if broker.faults is not None:
            broker.faults.begin(server)
        if broker.seed is not None:
            broker.seed.begin(server)
        if broker.security is not None:
            from kproto_server.broker.security import Security, first_secured, protocols_of

            hosts = [options.host, advertised.host, *(one.advertised.host for one in others)]
            security = Security(broker.security, hosts, broker.settings)
            protocols = protocols_of(options.listeners)
            security.apply(server, protocols)
            printed_listener, printed_protocol = first_secured(protocols)
    except BaseException:
        server.abandon()
        raise
    if not options.quiet:
        for line in (*server.state.notes(), *_open_to_others(options)):
            write(sys.stderr, f"kproto: {line}\n")
    _freeze_garbage_collector()
    loop.busy_poll.polls = useful_polls()
    nodes = server.state.cluster.nodes
    node_sockets = {node_id: {"": sock} for node_id, sock in zip(nodes, sockets, strict=True)}
    for other in others:
        for node_id, sock in zip(nodes, other.sockets, strict=True):
            node_sockets[node_id][other.name] = sock
    files = [AddressFile("--port-file", options.port_file, "".join(f"{address}\n" for address in addresses))]
    if options.control is not None and control is not None:
        files.append(AddressFile("--control-file", options.control.file, control.content, is_private=True))

    problem: list[UsageError] = []

    def ready() -> None:
        try:
            server.fill()
        except UsageError as error:
            problem.append(error)
            server.stop()
            return
        if control is not None:
            server.start_task(control.serve)
        if not options.quiet:
            for address, node in zip(addresses, nodes.values(), strict=True):
                shown = f"{bracketed(node.host)}:{node.port}"
                also = "" if shown == address else f"kproto: clients receive the address {shown}\n"
                write(sys.stdout, f"kproto: listening on {address}\n{also}")
                for name, (host, port) in node.others.items():
                    write(sys.stdout, f"kproto: listener {name} at {bracketed(host)}:{port}\n")
            if security is not None:
                from kproto_server.broker.controls import bootstrap_servers

                servers = bootstrap_servers(nodes.values(), printed_listener)
                write(sys.stdout, security.shown(servers, protocol=printed_protocol, listener=printed_listener))
            if control is not None:
                write(sys.stdout, f"kproto: control API at {control.shown(has_file=files[-1].path is not None)}\n")
        if not all(file.write() for file in files):
            server.stop()

    try:
        loop.run(lambda: _serve_until_end(server, node_sockets, ready, parents if options.exit_with_parent else ()))
    finally:
        for file in files:
            file.remove()
        if security is not None:
            security.close()
    if problem:
        raise problem[0]
    exit_code = max(file.exit_code for file in files)
    if options.report is None:
        return exit_code

    from kproto_server.commandline.reporting import report_on

    reported = report_on(server.observations, broker, options.report, "serve")
    return exit_code or reported


def _open_to_others(options: ServeOptions) -> list[str]:
    """Return a warning for each listener that other machines reach without TLS and SASL."""
    names = [f"{one.name} listener" for one in options.listeners[1:] if one.is_open]
    if not (options.listeners or options.broker.security) or (options.listeners and options.listeners[0].is_open):
        from kproto_server.configuration.listeners import is_loopback

        names[:0] = [] if is_loopback(options.host) else [f"listener on {options.host}"]
    return [f"the {name} is open to other machines, without TLS and SASL" for name in names]


class AddressFile:
    """A file that has addresses of a broker while it serves."""

    def __init__(
        self, option: str, path: str | None, content: str, *, is_private: bool = False, command: str = "serve"
    ) -> None:
        """``is_private``: only this user can read it."""
        self.path: str | None = path
        self._option = option
        self._content = content
        self._is_private = is_private
        self._command = command
        self.exit_code: int = 0
        """`NOT_WRITTEN` if it could not be written."""

    def write(self) -> bool:
        """Write the file in one rename; print the reason and return False if that is not possible."""
        try:
            if self.path is not None:
                output_file.write(self.path, self._content, is_private=self._is_private)
        except OSError as error:
            write(sys.stderr, f"kproto {self._command}: {self._option}: can't write {self.path!r}: {error.strerror}\n")
            self.exit_code = NOT_WRITTEN
        return not self.exit_code

    def remove(self) -> None:
        """Remove the file, unless another broker has written it since."""
        if self.path is not None:
            output_file.remove(self.path, self._content)


def _main_listener(options: ServeOptions) -> str:
    if options.listeners:
        return options.listeners[0].name
    return "PLAINTEXT" if options.broker.security is None else options.broker.security.protocol


def _freeze_garbage_collector() -> None:
    """Make full garbage collections rare.

    Long-lived objects here are groups, which are in no reference cycle. A full collection over a million of them stops
    the event loop for 200 ms. Collections of young objects take 5 % of a rebalance of 1,000 members from 10,000 of them
    on, and 2 % from 30,000 on.
    """
    import gc

    gc.freeze()
    gc.set_threshold(30_000, 10, 1_000)


def _parents() -> tuple[int, ...]:
    """Return the id of the parent process. The executable's first process only unpacks it: also that of its parent."""
    if not getattr(sys, "frozen", False):
        return (os.getppid(),)

    from kproto_server.process_tree import parent_of

    return os.getppid(), parent_of(os.getppid())


async def _serve_until_end(
    server: Server, sockets: dict[int, NodeSockets], ready: Callable[[], None], parents: tuple[int, ...]
) -> None:
    """Serve until a signal arrives, or until a process of ``parents`` has ended, if there are any.

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
            while _parents() == parents:
                await trio.sleep(PARENT_CHECK_S)
            server.stop()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop_on_signal)
            if parents:
                nursery.start_soon(stop_with_parent)
            await server.main(sockets, ready)
            signal.pthread_sigmask(signal.SIG_BLOCK, SHUTDOWN_SIGNALS)
            nursery.cancel_scope.cancel()
