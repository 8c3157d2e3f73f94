"""`kproto proxy`: a proxy in front of a real cluster until SIGTERM or SIGINT, then the report.

Exit codes: those of the report; 2 for a cluster that cannot be reached at the start, with one line on standard error.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import trio

from kproto.errors import UsageError
from kproto_server.broker.security import Security
from kproto_server.commandline import logs
from kproto_server.commandline.output import write
from kproto_server.commandline.reporting import NOT_WRITTEN, publish, write_files
from kproto_server.commandline.serve import SHUTDOWN_SIGNALS, AddressFile
from kproto_server.configuration.listeners import SSL
from kproto_server.network.accepting import NO_SECURITY
from kproto_server.observation.observe import Observations
from kproto_server.proxy.proxy import Proxy
from kproto_server.proxy.recording import Recording
from kproto_server.proxy.upstream import CannotReach, connect, release_of, served_versions, shown_address, tls_context
from kproto_server.report.model import Report, build

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from kproto_server.commandline.options import ProxyOptions

REPORT_INTERVAL_S = 5.0
"""How often the files of the report are written while the proxy serves."""


def proxy(options: ProxyOptions) -> int:
    """Serve until SIGTERM or SIGINT, then publish the report; return the exit code.

    Raises:
        CannotListen: the address is in use.
        UsageError: the cluster can't be reached.
    """
    try:
        return trio.run(_proxy, options)
    except CannotReach as error:
        raise UsageError(f"--upstream: {error}") from None


async def _proxy(options: ProxyOptions) -> int:
    """Run the proxy until a signal arrives; return the exit code.

    Cancellation: listeners and connections are closed, the port file is removed, and no report is written.
    """
    observations = Observations()
    with ExitStack() as stack, trio.open_signal_receiver(*SHUTDOWN_SIGNALS) as signals:
        kafka_version = options.kafka_version
        tls = None
        if options.upstream_tls_ca is not None:
            tls = tls_context(options.upstream_tls_ca, options.upstream_tls_certificate, options.upstream_tls_key)
        served = await served_versions(options.upstream, tls) if kafka_version is None else kafka_version.api_versions
        if kafka_version is None:
            kafka_version = release_of(served)
        else:
            (await connect(options.upstream, tls)).close()
        security = None
        if options.security is not None:
            security = Security(options.security, (options.host, options.advertised_host), options.settings)
            stack.callback(security.close)
        recording = _recording(options.capture)
        if recording is not None:
            stack.callback(recording.close)
        server = Proxy(
            options.upstream,
            host=options.host,
            port=options.port,
            advertised_host=options.advertised_host,
            observations=observations,
            served=served,
            tls=tls,
            recording=recording,
            security=NO_SECURITY if security is None else security.of_listener(SSL),
            settings=options.settings,
        )
        stack.callback(server.close)
        logs.configure(options.log_level)
        address = shown_address(next(iter(server.addresses.values())))
        file = AddressFile("--port-file", options.port_file, f"{address}\n", command="proxy")
        stack.callback(file.remove)

        def report() -> Report:
            return build(
                observations.snapshot(),
                kafka_version=kafka_version,
                target=options.report.target,
                offsets_retention_minutes=None,
            )

        if not options.report.quiet:
            write(
                sys.stdout,
                f"kproto: listening on {address}\n"
                f"kproto: in front of {shown_address(options.upstream)}, Kafka {kafka_version.name}\n"
                + ("" if security is None else security.shown(address)),
            )
        if file.write():
            await _serve(server, signals, lambda: write_files(report(), options.report), recording)
    exit_code = publish(report(), options.report, "proxy")
    return file.exit_code or (NOT_WRITTEN if recording is not None and recording.has_failed else exit_code)


def _recording(path: str | None) -> Recording | None:
    """Return the capture in a file.

    Raises:
        UsageError: the file can't be written.
    """
    try:
        return None if path is None else Recording(path)
    except OSError as error:
        raise UsageError(f"--capture: can't write {path!r}: {error.strerror}") from None


async def _serve(
    server: Proxy, signals: AsyncIterator[int], write_report: Callable[[], None], recording: Recording | None
) -> None:
    """Serve until a signal arrives, and write the report meanwhile.

    Cancellation: all connections are closed; a report that is being written is finished first.
    """

    async def write_reports() -> None:
        while True:
            await trio.sleep(REPORT_INTERVAL_S)
            if recording is not None:
                recording.flush()
            # A report of a thousand clients takes a second, in which connections would wait.
            await trio.to_thread.run_sync(write_report)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve)
        nursery.start_soon(write_reports)
        async for _ in signals:
            break
        nursery.cancel_scope.cancel()
