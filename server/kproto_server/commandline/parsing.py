"""Check the arguments of `kproto serve` and `kproto run` before anything starts."""

from __future__ import annotations

from kproto_server.commandline import output_file
from kproto_server.commandline.arguments import Command, whole_number
from kproto_server.commandline.broker_settings import checked, configuration, last
from kproto_server.commandline.commands import REPORT_OPTIONS, RUN, SERVE
from kproto_server.commandline.options import DEFAULT_HOST, DEFAULT_PORT, LOG_LEVELS, PORT_MAX, STANDARD_OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.clock import ClockMode
    from kproto_server.commandline.broker_settings import Given
    from kproto_server.commandline.options import BrokerOptions, ReportOptions, RunOptions, ServeOptions
    from kproto_server.configuration.data_directory import DataDirectory
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

REPORT_NAMES = {option.name for option in REPORT_OPTIONS}
ALL_ADDRESSES = "0.0.0.0"  # noqa: S104
BROKERS_MAX = 1000
"""A larger cluster exhausts ports and file descriptors."""


def serve_options(words: Sequence[str]) -> ServeOptions:
    """Parse the arguments after ``kproto serve``, and remove the port file of an earlier broker.

    Raises:
        CommandLineError: an argument is wrong.
        HelpRequested: the arguments include ``--help``.
    """
    from kproto_server.commandline.options import ServeOptions

    _remove_port_file(words)
    given, _ = SERVE.parse(words)
    port_file = last(given, "--port-file")
    if port_file is not None:
        _check_writable(SERVE, "--port-file", port_file)
    configured = configuration(SERVE, given, _kafka_version(SERVE, given), has_listeners=True)
    broker = _broker(SERVE, given, configured.settings, default_log_level="info")
    bound = configured.bound or (DEFAULT_HOST, DEFAULT_PORT)
    host = last(given, "--host") or bound[0] or ALL_ADDRESSES
    return ServeOptions(
        broker=broker,
        host=host,
        port=_port(SERVE, given, broker.brokers, bound[1]),
        advertised=configured.advertised or _own_name(host),
        port_file=port_file,
        exit_with_parent="--exit-with-parent" in given,
        quiet="--quiet" in given,
        report=_report(SERVE, given) if REPORT_NAMES & given.keys() else None,
    )


def _remove_port_file(words: Sequence[str]) -> None:
    """Remove the port file of an earlier broker, even if the command line is wrong."""
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--port-file" and (equals or words[number + 1 :]):
            output_file.remove(value if equals else words[number + 1])


def run_options(words: Sequence[str]) -> RunOptions:
    """Parse the arguments after ``kproto run``.

    Raises:
        CommandLineError: an argument is wrong.
        HelpRequested: the arguments include ``--help``.
    """
    from kproto_server.commandline.options import RunOptions

    given, command = RUN.parse(words)
    if not command:
        raise RUN.error("nothing to run: write kproto run -- COMMAND")
    report = _report(RUN, given)
    configured = configuration(RUN, given, _kafka_version(RUN, given), has_listeners=False)
    broker = _broker(RUN, given, configured.settings, default_log_level="warning")
    return RunOptions(command=tuple(command), broker=broker, report=report, port=_port(RUN, given, broker.brokers, 0))


def _own_name(host: str) -> tuple[str, int] | None:
    """Return this machine's name if the host means all its addresses, to which no client can connect; else None."""
    if host not in (ALL_ADDRESSES, "::"):
        return None
    import socket

    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:  # a name that this machine can't resolve is of less use than the address
        return None
    return (name, 0)


def _broker(command: Command, given: Given, settings: Settings, *, default_log_level: str) -> BrokerOptions:
    from kproto_server.commandline.options import BrokerOptions

    return BrokerOptions(
        kafka_version=settings.kafka_version,
        settings=settings,
        clock=_clock(command, given),
        brokers=_brokers(command, given),
        data=_data(command, given),
        log_level=_log_level(command, given, default_log_level),
    )


def _report(command: Command, given: Given) -> ReportOptions:
    from kproto_server.commandline.options import ReportOptions
    from kproto_server.report.files import SUFFIXES
    from kproto_server.report.verdict import target_named

    files = given.get("--report", [])
    for path in files:
        if path == STANDARD_OUTPUT:
            continue
        if not path.endswith(SUFFIXES):
            raise command.error(
                f"--report can't be {path!r}: its name ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, "
                f"or is {STANDARD_OUTPUT}"
            )
        _check_writable(command, "--report", path)
    return ReportOptions(
        target=checked(command, "--target", lambda: target_named(last(given, "--target"))),
        files=tuple(files),
        fail_on_removed="--fail-on-removed" in given,
        fail_on_protocol_error="--fail-on-protocol-error" in given,
        quiet="--quiet" in given,
    )


def _log_level(command: Command, given: Given, default: str) -> str:
    level = last(given, "--log-level") or ("error" if "--quiet" in given else default)
    if level not in LOG_LEVELS:
        raise command.error(f"--log-level can't be {level!r}: use {', '.join(LOG_LEVELS[:-1])} or {LOG_LEVELS[-1]}")
    return level


def _kafka_version(command: Command, given: Given) -> KafkaVersion:
    from kproto_server.releases.kafka_version import LATEST, KafkaVersion

    return checked(command, "--kafka-version", lambda: KafkaVersion.named(last(given, "--kafka-version") or LATEST))


def _clock(command: Command, given: Given) -> ClockMode:
    from kproto_server.clock import ClockMode

    return checked(command, "--clock", lambda: ClockMode.parse(last(given, "--clock") or "real"))


def _data(command: Command, given: Given) -> DataDirectory | None:
    from kproto_server.configuration.data_directory import data_directory

    path, durability = last(given, "--data-dir"), last(given, "--durability")
    name = "--durability" if durability is not None else "--repair"
    return checked(command, name, lambda: data_directory(path, durability, repair="--repair" in given))


def _brokers(command: Command, given: Given) -> int:
    return whole_number(command, "--brokers", last(given, "--brokers") or "1", 1, BROKERS_MAX)


def _port(command: Command, given: Given, brokers: int, default: int) -> int:
    """Return the first port; the ports of all brokers must be in range."""
    return whole_number(command, "--port", last(given, "--port") or str(default), 0, PORT_MAX - brokers + 1)


def _check_writable(command: Command, name: str, path: str) -> None:
    """Refuse a file that cannot be written now, not after an hour's run."""
    try:
        output_file.check_writable(path)
    except OSError as error:
        raise command.error(f"{name}: can't write {path!r}: {error.strerror}") from None
