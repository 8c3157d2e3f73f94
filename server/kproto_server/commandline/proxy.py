"""`kproto proxy`: a proxy in front of a real cluster until SIGTERM or SIGINT, then the report.

Exit codes: those of the report; 2 for a cluster that cannot be reached at the start, with one line on standard error;
130 and 143 for a signal before the proxy listens.
"""

from __future__ import annotations

import signal
import sys
import time
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import trio

from kproto.errors import UsageError
from kproto_server.broker.fault_file import read_items
from kproto_server.broker.security import Security
from kproto_server.commandline import logs
from kproto_server.commandline.output import write
from kproto_server.commandline.reporting import NOT_WRITTEN, publish, write_files
from kproto_server.commandline.serve import REQUESTS_KEPT, SHUTDOWN_SIGNALS, AddressFile
from kproto_server.configuration.listeners import SSL
from kproto_server.control.listening import open_port
from kproto_server.network.accepting import NO_SECURITY
from kproto_server.network.descriptors import raise_limit
from kproto_server.observation.observe import Observations
from kproto_server.observation.request_log import RequestLog
from kproto_server.proxy.control import Controlled, ProxyService
from kproto_server.proxy.faults import ProxyRules
from kproto_server.proxy.keeping import KeptRequests
from kproto_server.proxy.proxy import Proxy
from kproto_server.proxy.recording import Recording
from kproto_server.proxy.upstream import (
    CannotReach,
    connect,
    mechanisms_of,
    release_of,
    served_versions,
    shown_address,
    tls_context,
)
from kproto_server.report.model import Report, build
from kproto_server.security.client_settings import Login
from kproto_server.security.sasl import MECHANISMS, OAUTHBEARER

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping

    from kproto_server.commandline.options import ProxyOptions
    from kproto_server.control.controls import Run
    from kproto_server.observation.observed import Snapshot
    from kproto_server.releases.kafka_version import KafkaVersion

T = TypeVar("T")

SASL_HANDSHAKE = 17
SIGNALED = 128
"""Exit code of a signal that arrives before the proxy listens, without its number: nothing is reported then."""
REPORT_INTERVAL_S = 5.0
"""How often the files of the report are written while the proxy serves."""


def proxy(options: ProxyOptions) -> int:
    """Serve until SIGTERM or SIGINT, then publish the report; return the exit code.

    Raises:
        CannotListen: the address is in use.
        UsageError: the cluster can't be reached.
    """
    raise_limit()
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
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SHUTDOWN_SIGNALS)  # the parent may have blocked them
        tls = None
        if options.upstream_tls_ca is not None:
            tls = tls_context(options.upstream_tls_ca, options.upstream_tls_certificate, options.upstream_tls_key)
        cluster = await _unless_ended(signals, lambda: _cluster(options, tls))
        if isinstance(cluster, int):
            return SIGNALED + cluster
        kafka_version, served = cluster.kafka_version, cluster.served
        security = None
        if options.security is not None:
            security = Security(options.security, (options.host, options.advertised_host), options.settings)
            stack.callback(security.close)
        rules = ProxyRules(kafka_version, now_ms, lambda seed: Random(seed).random)  # noqa: S311 - reproducible
        if options.faults is not None:
            add_from_file(rules, options.faults)
        request_log = RequestLog(REQUESTS_KEPT if options.control is not None else 0, is_on=False)
        control = None
        if options.control is not None:
            control = open_port(options.control.host, options.control.port)
            stack.callback(control.socket.close)
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
            rules=rules,
            kept=None if control is None else KeptRequests(request_log, wall_ms),
        )
        stack.callback(server.close)
        logs.configure(options.log_level)
        address = shown_address(next(iter(server.addresses.values())))
        file = AddressFile("--port-file", options.port_file, f"{address}\n", command="proxy")
        stack.callback(file.remove)

        files = [file]
        if options.control is not None and control is not None:
            control_file = AddressFile(
                "--control-file", options.control.file, control.content, is_private=True, command="proxy"
            )
            stack.callback(control_file.remove)
            files.append(control_file)

        def built(snapshot: Snapshot, target: KafkaVersion | None = None) -> Report:
            return build(
                snapshot,
                kafka_version=kafka_version,
                target=target or options.report.target,
                offsets_retention_minutes=None,
            )

        def report() -> Report:
            return built(observations.snapshot())

        def report_from_thread(run: Run, target: KafkaVersion | None) -> Report:
            return built(run(lambda _: observations.snapshot()), target)

        controlled = Controlled(server, rules, request_log, report_from_thread, wall_ms)

        has_file = options.control is not None and options.control.file is not None
        if not options.report.quiet:
            write(
                sys.stdout,
                f"kproto: listening on {address}\n"
                f"kproto: in front of {shown_address(options.upstream)}, Kafka {kafka_version.name}\n"
                + ("" if security is None else security.shown(address, cluster.login))
                + ("" if control is None else f"kproto: control API at {control.shown(has_file=has_file)}\n"),
            )
        if all(file.write() for file in files):
            await _serve(
                server,
                signals,
                lambda: write_files(report(), options.report),
                recording,
                None if control is None else partial(control.serve_service, lambda: ProxyService(controlled)),
            )
    exit_code = publish(report(), options.report, "proxy")
    if recording is not None and recording.has_failed:
        exit_code = NOT_WRITTEN
    return max(file.exit_code for file in files) or exit_code


class _Cluster(NamedTuple):
    """What the cluster says before the proxy listens."""

    kafka_version: KafkaVersion
    served: Mapping[int, tuple[int, int]]
    """API versions by API key."""
    login: Login | None
    """A login that the settings of clients show; None: they show none."""


async def _cluster(options: ProxyOptions, tls: ssl.SSLContext | None) -> _Cluster:
    """Return what the cluster says.

    Raises:
        CannotReach: it can't be reached, or does not respond.

    Cancellation: the connections are closed.
    """
    kafka_version = options.kafka_version
    if kafka_version is None:
        served: Mapping[int, tuple[int, int]] = await served_versions(options.upstream, tls)
        kafka_version = release_of(served)
    else:
        served = kafka_version.api_versions
        (await connect(options.upstream, tls)).close()
    login = None
    if options.security is not None and SASL_HANDSHAKE in served and not options.report.quiet:
        _, newest = served[SASL_HANDSHAKE]
        login = _login(await mechanisms_of(options.upstream, min(newest, 1), tls))
    return _Cluster(kafka_version, served, login)


async def _unless_ended(signals: AsyncIterator[int], action: Callable[[], Awaitable[T]]) -> T | int:
    """Return what an action returns, or the number of a signal that arrives before its end and cancels it.

    Raises:
        CannotReach: as the action.

    Cancellation: as of the action.
    """
    arrived: list[int] = []
    results: list[T] = []
    problem: CannotReach | None = None
    async with trio.open_nursery() as nursery:

        async def cancel_on_signal() -> None:
            async for number in signals:
                arrived.append(number)
                nursery.cancel_scope.cancel()
                return

        nursery.start_soon(cancel_on_signal)
        try:
            results.append(await action())
        except CannotReach as error:  # not in a group
            problem = error
        nursery.cancel_scope.cancel()
    if arrived:  # also if it came just behind the end of the action
        return arrived[0]
    if problem is not None:
        raise problem
    return results[0]


def _login(mechanisms: Collection[str]) -> Login | None:
    """Return a login to show in the settings of clients, whose user and password are the cluster's; None: clients need
    none, or no settings for the mechanisms are known."""
    known = next((one for one in MECHANISMS if one in mechanisms and one != OAUTHBEARER), None)
    return None if known is None else Login(known, "USER", "PASSWORD")


def wall_ms() -> int:
    """Return the time since the epoch."""
    return time.time_ns() // 1_000_000


def now_ms() -> int:
    """Return the time of fault rules."""
    return int(trio.current_time() * 1000)


def add_from_file(rules: ProxyRules, path: str) -> None:
    """Add the rules of a YAML file.

    Raises:
        UsageError: the file can't be read, or a rule is wrong; the text has its number.
    """
    try:
        items = read_items(path)
    except UsageError as error:
        raise UsageError(f"--faults: {error}") from None
    for number, given in enumerate(items, 1):
        try:
            rules.add(given)
        except UsageError as error:
            raise UsageError(f"--faults: {path}: fault rule {number}: {error}") from None


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
    server: Proxy,
    signals: AsyncIterator[int],
    write_report: Callable[[], None],
    recording: Recording | None,
    serve_control: Callable[[], Awaitable[None]] | None,
) -> None:
    """Serve until a signal arrives, also the control port, and write the report meanwhile.

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
        if serve_control is not None:
            nursery.start_soon(serve_control)
        async for _ in signals:
            break
        nursery.cancel_scope.cancel()
