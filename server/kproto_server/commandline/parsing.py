"""Check the arguments of `kproto serve` and `kproto run` before anything starts."""

from __future__ import annotations

from kproto_server.commandline import output_file
from kproto_server.commandline.arguments import Command, whole_number
from kproto_server.commandline.commands import RUN, SERVE
from kproto_server.commandline.options import DEFAULT_HOST, DEFAULT_PORT, PORT_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from kproto_server.clock import ClockMode
    from kproto_server.commandline.options import RunOptions, ServeOptions
    from kproto_server.configuration.data_directory import DataDirectory
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

    Given = dict[str, list[str]]
    T = TypeVar("T")

BROKERS_MAX = 1000
"""A larger cluster exhausts ports and file descriptors."""


def serve_options(words: Sequence[str]) -> ServeOptions:
    """Parse the arguments after ``kproto serve``, and remove the port file of an earlier broker.

    Raises:
        CommandLineError: an argument is wrong.
        HelpRequested: the arguments include ``--help``.
    """
    from kproto_server.commandline.options import ServeOptions

    given, _ = SERVE.parse(words)
    port_file = _last(given, "--port-file")
    if port_file is not None:  # before all else: that of an earlier broker must not outlive a failed start
        output_file.remove(port_file)
        _check_writable(SERVE, "--port-file", port_file)
    kafka_version = _kafka_version(SERVE, given)
    brokers = _brokers(SERVE, given)
    return ServeOptions(
        kafka_version=kafka_version,
        settings=_settings(SERVE, given, kafka_version),
        clock=_clock(SERVE, given),
        host=_last(given, "--host") or DEFAULT_HOST,
        port=_port(SERVE, given, brokers, DEFAULT_PORT),
        port_file=port_file,
        exit_with_parent="--exit-with-parent" in given,
        brokers=brokers,
        data=_data(SERVE, given),
    )


def run_options(words: Sequence[str]) -> RunOptions:
    """Parse the arguments after ``kproto run``.

    Raises:
        CommandLineError: an argument is wrong.
        HelpRequested: the arguments include ``--help``.
    """
    from kproto_server.commandline.options import RunOptions
    from kproto_server.report.files import SUFFIXES
    from kproto_server.report.verdict import target_named

    given, command = RUN.parse(words)
    if not command:
        raise RUN.error("nothing to run: write kproto run -- COMMAND")
    kafka_version = _kafka_version(RUN, given)
    brokers = _brokers(RUN, given)
    reports = given.get("--report", [])
    for path in reports:
        if not path.endswith(SUFFIXES):
            raise RUN.error(
                f"--report can't be {path!r}: its name ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
            )
        _check_writable(RUN, "--report", path)
    return RunOptions(
        command=tuple(command),
        kafka_version=kafka_version,
        target=_checked(RUN, "--target", lambda: target_named(_last(given, "--target"))),
        settings=_settings(RUN, given, kafka_version),
        clock=_clock(RUN, given),
        brokers=brokers,
        port=_port(RUN, given, brokers, 0),
        reports=tuple(reports),
        fail_on_removed="--fail-on-removed" in given,
        fail_on_protocol_error="--fail-on-protocol-error" in given,
        data=_data(RUN, given),
    )


def _last(given: Given, name: str) -> str | None:
    values = given.get(name)
    return values[-1] if values else None


def _checked(command: Command, name: str, read: Callable[[], T]) -> T:
    """Return the result of ``read``; report its ValueError as a usage error of the option."""
    try:
        return read()
    except ValueError as error:
        raise command.error(f"{name}: {error}") from None


def _kafka_version(command: Command, given: Given) -> KafkaVersion:
    from kproto_server.releases.kafka_version import LATEST, KafkaVersion

    return _checked(command, "--kafka-version", lambda: KafkaVersion.named(_last(given, "--kafka-version") or LATEST))


def _clock(command: Command, given: Given) -> ClockMode:
    from kproto_server.clock import ClockMode

    return _checked(command, "--clock", lambda: ClockMode.parse(_last(given, "--clock") or "real"))


def _data(command: Command, given: Given) -> DataDirectory | None:
    from kproto_server.configuration.data_directory import data_directory

    path, durability = _last(given, "--data-dir"), _last(given, "--durability")
    name = "--durability" if durability is not None else "--repair"
    return _checked(command, name, lambda: data_directory(path, durability, repair="--repair" in given))


def _brokers(command: Command, given: Given) -> int:
    return whole_number(command, "--brokers", _last(given, "--brokers") or "1", 1, BROKERS_MAX)


def _port(command: Command, given: Given, brokers: int, default: int) -> int:
    """Return the first port; the ports of all brokers must be in range."""
    return whole_number(command, "--port", _last(given, "--port") or str(default), 0, PORT_MAX - brokers + 1)


def _settings(command: Command, given: Given, kafka_version: KafkaVersion) -> Settings:
    """Return the defaults, overridden by the file, overridden by ``--set``."""
    from kproto_server.configuration.settings import Settings

    settings = Settings(kafka_version)
    path = _last(given, "--config")
    if path is not None:
        text = _read(command, path)
        settings = _checked(command, f"--config {path}", lambda: Settings(kafka_version).with_properties(text))
    return _checked(command, "--set", lambda: settings.with_assignments(given.get("--set", [])))


def _read(command: Command, path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise command.error(f"--config: can't read {path!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise command.error(f"--config: {path!r} is not a text file in UTF-8") from None


def _check_writable(command: Command, name: str, path: str) -> None:
    """Refuse a file that cannot be written now, not after an hour's run."""
    try:
        output_file.check_writable(path)
    except OSError as error:
        raise command.error(f"{name}: can't write {path!r}: {error.strerror}") from None
