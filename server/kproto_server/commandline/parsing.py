"""Check the arguments of `kproto serve`, `run`, `audit` and `proxy` before anything starts."""

from __future__ import annotations

from functools import partial

from kproto import output_file
from kproto_server.commandline.arguments import Command, last, whole_number
from kproto_server.commandline.broker_settings import Configuration, checked, configuration
from kproto_server.commandline.commands import AUDIT, FAULT_OPTIONS, PROXY, REPORT_OPTIONS, RUN, SECURITY_OPTIONS, SERVE
from kproto_server.commandline.options import DEFAULT_HOST, DEFAULT_PORT, LOG_LEVELS, PORT_MAX, STANDARD_OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.broker.fault_file import Faults
    from kproto_server.broker.security import SecurityOptions
    from kproto_server.broker.seed import Seed
    from kproto_server.clock import ClockMode
    from kproto_server.commandline.broker_settings import Given
    from kproto_server.commandline.options import (
        AuditOptions,
        BrokerOptions,
        ControlOptions,
        ProxyOptions,
        ReportOptions,
        RunOptions,
        ServeOptions,
    )
    from kproto_server.configuration.data_directory import DataDirectory
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

SECURITY_NAMES = {option.name for option in SECURITY_OPTIONS}
REPORT_NAMES = {option.name for option in REPORT_OPTIONS}
FAULT_NAMES = {option.name for option in FAULT_OPTIONS}
UPSTREAM_NEEDS = {"--upstream-tls-key": "--upstream-tls-certificate", "--upstream-tls-certificate": "--upstream-tls-ca"}
"""Options of `kproto proxy` that mean nothing without another one."""
ALL_ADDRESSES = "0.0.0.0"  # noqa: S104


def serve_options(words: Sequence[str]) -> ServeOptions:
    """Parse the arguments after ``kproto serve``, and remove the port and control files of an earlier broker.

    Raises:
        CommandLineError: an argument is wrong.
        HelpRequested: the arguments include ``--help``.
    """
    from kproto_server.commandline.options import ServeOptions

    _remove_files(words)
    given, _ = SERVE.parse(words)
    port_file = last(given, "--port-file")
    if port_file is not None:
        _check_writable(SERVE, "--port-file", port_file)
    configured = configuration(SERVE, given, _kafka_version(SERVE, given), has_listeners=True)
    broker = _broker(SERVE, given, configured, default_log_level="info")
    bound = configured.bound or (DEFAULT_HOST, DEFAULT_PORT)
    host = last(given, "--host") or bound[0] or ALL_ADDRESSES
    return ServeOptions(
        broker=broker,
        host=host,
        port=_port(SERVE, given, broker.brokers, bound[1]),
        advertised=configured.advertised or _own_name(host),
        listeners=configured.listeners,
        port_file=port_file,
        exit_with_parent="--exit-with-parent" in given,
        quiet="--quiet" in given,
        report=_report(SERVE, given) if REPORT_NAMES & given.keys() else None,
        control=_control(SERVE, given),
    )


def _remove_files(words: Sequence[str]) -> None:
    """Remove the files of an earlier broker's addresses, even if the command line is wrong."""
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in ("--port-file", "--control-file") and (equals or words[number + 1 :]):
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
    broker = _broker(RUN, given, configured, default_log_level="warning")
    return RunOptions(
        command=tuple(command),
        broker=broker,
        report=report,
        port=_port(RUN, given, broker.brokers, 0),
        control=_control(RUN, given),
    )


def audit_options(words: Sequence[str]) -> AuditOptions:
    """Parse the arguments after ``kproto audit``: options stand before, between and after the files.

    Raises:
        CommandLineError: an argument is wrong.
        HelpRequested: the arguments include ``--help``.
    """
    from kproto_server.commandline.options import AuditOptions

    given, files = AUDIT.parse_files(words)
    if not files:
        raise AUDIT.error("no file given: write kproto audit FILE")
    return AuditOptions(
        files=tuple(files),
        kafka_version=_kafka_version(AUDIT, given) if "--kafka-version" in given else None,
        report=_report(AUDIT, given),
    )


def proxy_options(words: Sequence[str]) -> ProxyOptions:
    """Parse the arguments after ``kproto proxy``, and remove the port file of an earlier one.

    Raises:
        CommandLineError: an argument is wrong.
        HelpRequested: the arguments include ``--help``.
    """
    from kproto_server.commandline.options import ProxyOptions

    _remove_files(words)
    given, _ = PROXY.parse(words)
    port_file, host = last(given, "--port-file"), last(given, "--host") or DEFAULT_HOST
    if port_file is not None:
        _check_writable(PROXY, "--port-file", port_file)
    upstream = last(given, "--upstream")
    if upstream is None:
        raise PROXY.error("no cluster given: write --upstream HOST:PORT")
    for name, needed in UPSTREAM_NEEDS.items():
        if name in given and needed not in given:
            raise PROXY.error(f"{name} needs {needed} FILE")
    own_name = _own_name(host)
    security, settings = _tls_of_proxy(given)
    return ProxyOptions(
        upstream=address(PROXY, "--upstream", upstream, "--upstream HOST:PORT"),
        report=_report(PROXY, given),
        log_level=_log_level(PROXY, given, "info"),
        host=host,
        port=_port(PROXY, given, 1, DEFAULT_PORT),
        advertised_host=last(given, "--advertised-host") or (None if own_name is None else own_name[0]),
        port_file=port_file,
        upstream_tls_ca=last(given, "--upstream-tls-ca"),
        upstream_tls_certificate=last(given, "--upstream-tls-certificate"),
        upstream_tls_key=last(given, "--upstream-tls-key"),
        security=security,
        settings=settings,
        capture=last(given, "--capture"),
        faults=last(given, "--faults"),
        control=_control(PROXY, given),
        kafka_version=_kafka_version(PROXY, given) if "--kafka-version" in given else None,
    )


def _tls_of_proxy(given: Given) -> tuple[SecurityOptions | None, Settings]:
    """Return TLS towards clients, and its settings."""
    from kproto_server.configuration.settings import Settings

    for text in given.get("--set", ()):
        name = text.partition("=")[0].strip()
        if not name.startswith("ssl."):
            raise PROXY.error(f"--set: {name!r} is no setting of TLS, whose names begin with ssl.")
        if "--tls" not in given:
            raise PROXY.error(f"--set: {name} needs --tls auto")
    settings = checked(PROXY, "--set", lambda: Settings().with_assignments(given.get("--set", ())))
    return _security(PROXY, given, Configuration(settings))


def address(command: Command, name: str, text: str, form: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT; an IPv6 address stands in brackets.

    Raises:
        CommandLineError: the text is no address; the error has the ``form`` to write.
    """
    host, _, port = text.rpartition(":")
    if not host or (":" in host) != (host[0] == "[" and host[-1] == "]"):
        raise command.error(f"{name} can't be {text!r}: write {form}")
    try:
        host.encode("idna")  # as the resolver does
    except UnicodeError:
        raise command.error(f"{name} can't be {text!r}: {host!r} is no host name") from None
    return host.strip("[]"), whole_number(command, name, port, 1, PORT_MAX)


def _control(command: Command, given: Given) -> ControlOptions | None:
    port, file = last(given, "--control-port"), last(given, "--control-file")
    if port is None:
        for name in ("--control-host", "--control-file"):
            if name in given:
                raise command.error(f"{name} needs a control port: write --control-port 0 (a free one)")
        return None
    from kproto_server.commandline.options import ControlOptions

    if file is not None:
        _check_writable(command, "--control-file", file)
    number = whole_number(command, "--control-port", port, 0, PORT_MAX)
    return ControlOptions(host=last(given, "--control-host") or DEFAULT_HOST, port=number, file=file)


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


def _broker(command: Command, given: Given, configured: Configuration, *, default_log_level: str) -> BrokerOptions:
    from kproto_server.commandline.options import BrokerOptions

    security, settings = _security(command, given, configured)
    return BrokerOptions(
        kafka_version=settings.kafka_version,
        settings=settings,
        clock=_clock(command, given),
        brokers=_brokers(command, given),
        data=_data(command, given),
        log_level=_log_level(command, given, default_log_level),
        faults=_faults(command, given, settings),
        seed=_seed(command, given, settings),
        security=security,
    )


def _security(command: Command, given: Given, configured: Configuration) -> tuple[SecurityOptions | None, Settings]:
    """Return what the listeners have, and the settings with it."""
    from kproto_server.configuration.settings import MECHANISMS_SETTING, NEED_SECURITY

    settings, mechanisms = configured.settings, configured.mechanisms
    names = SECURITY_NAMES & given.keys()
    is_set = settings.is_set(MECHANISMS_SETTING) or settings.own_stores or settings.listeners_with(NEED_SECURITY)
    if not (names or mechanisms or is_set):
        return None, settings
    from kproto_server.broker.security import SecurityOptions

    users = dict(configured.users)
    for text in given.get("--user", []):
        name, colon, users[name] = text.partition(":")
        if not colon:  # the text may be the password
            raise command.error("--user: no password: write NAME:PASSWORD")
    if "--sasl" in given:
        mechanisms = tuple(name.strip() for name in given["--sasl"][-1].split(",") if name.strip())
    options = SecurityOptions(last(given, "--tls"), last(given, "--tls-dir"), mechanisms, users, configured.users_of)
    source = ", ".join(sorted(names)) or ("--config" if configured.mechanisms else "--set")
    return options, checked(command, source, lambda: options.checked(settings))


def _seed(command: Command, given: Given, settings: Settings) -> Seed | None:
    path = last(given, "--seed")
    if path is None:
        return None
    from kproto_server.broker.seed import checked_seed

    nodes = _brokers(command, given)
    return checked(command, "--seed", lambda: checked_seed(path, settings.kafka_version, settings, nodes))


def _faults(command: Command, given: Given, settings: Settings) -> Faults | None:
    """Return what goes wrong from the start on; None: nothing."""
    if not FAULT_NAMES & given.keys():
        return None
    from kproto_server.broker.fault_file import checked_faults, checked_network

    first, kafka_version = settings.first_node_id, settings.kafka_version
    nodes = range(first, first + _brokers(command, given))
    path = last(given, "--faults")
    found = checked(command, "--faults", lambda: checked_faults(() if path is None else path, kafka_version, nodes))
    for text in given.get("--network", ()):
        conditions = checked(command, "--network", partial(checked_network, _conditions(text), nodes))
        found = found._replace(network=(*found.network, conditions))
    return found._replace(
        forward_commits=found.forward_commits or "--forward-commits" in given,
        conditional_commits=found.conditional_commits or "--conditional-commits" in given,
    )


def _conditions(text: str) -> dict[str, object]:
    """Return names and values of ``latency_ms=20,black_hole``; a name without a value is true."""
    found: dict[str, object] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if value in ("true", "false") or not equals:
            found[name] = value != "false"
        elif value.isascii() and value.isdigit() and len(value) < 20:
            found[name] = int(value)
        else:
            found[name] = value
    return found


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
    from kproto_server.configuration.listeners import BROKERS_MAX

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
