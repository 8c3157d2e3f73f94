"""The command ``kproto``: checks the whole command line before anything starts.

Exit codes: 2 for a mistake on the command line, with one line that says what to do; otherwise `kproto run` exits with
the code of its command. A subcommand imports only the modules it needs, because `kproto serve` must listen early.
"""

from __future__ import annotations

import sys

from kproto.errors import CommandLineError
from kproto_server.commandline.arguments import Command, HelpRequested, Option, whole_number
from kproto_server.commandline.options import DEFAULT_HOST, DEFAULT_PORT, PORT_MAX
from kproto_server.commandline.output import write

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

USAGE_ERROR = 2
INTERRUPTED = 130
BROKERS_MAX = 1000
"""A larger cluster exhausts ports and file descriptors."""

KAFKA_VERSION = Option(
    "--kafka-version", "RELEASE", "behave as this release, 0.8.2 to 4.4 (default: latest, all at once)"
)
BROKERS = Option("--brokers", "N", "this many brokers, each with a port of its own (default 1)")
SET = Option("--set", "NAME=VALUE", "a broker setting by Kafka's name; may be repeated", repeats=True)
CONFIG = Option("--config", "FILE", "broker settings from a file like server.properties; --set goes on top")
CLOCK = Option("--clock", "CLOCK", "real, scaled:N (N times as fast), manual, or auto (jumps when idle)")
DATA_DIR = Option("--data-dir", "DIR", "keep offsets and records here, in Kafka's format (default: in memory)")
DURABILITY = Option("--durability", "MODE", "survive power loss (fsync; default with --data-dir) or only kills (os)")
REPAIR = Option("--repair", "", "truncate damaged logs where the damage begins instead of refusing them")

SERVE = Command(
    "serve",
    "Run a broker until Ctrl-C or SIGTERM.",
    "",
    (
        Option("--host", "HOST", f"address to listen on (default {DEFAULT_HOST})"),
        Option("--port", "PORT", f"port of the first broker; 0: a free port for each (default {DEFAULT_PORT})"),
        Option("--port-file", "FILE", "write HOST:PORT here once listening, a line for each broker"),
        BROKERS,
        KAFKA_VERSION,
        SET,
        CONFIG,
        CLOCK,
        DATA_DIR,
        DURABILITY,
        REPAIR,
    ),
)
RUN = Command(
    "run",
    "Run a command with KAFKA_BOOTSTRAP_SERVERS set to a broker of its own, exit with its exit code, and\n"
    "report what its Kafka clients sent: on standard error, so that the command's output can be piped.",
    "-- COMMAND [ARGUMENT ...]",
    (
        Option("--target", "RELEASE", "report what would break on this Kafka release (default: the newest)"),
        Option("--fail-on-removed", "", "exit with 1 if something would break there"),
        Option("--report", "FILE", "write the whole report: .json, .md or .html; may be repeated", repeats=True),
        BROKERS,
        Option("--port", "PORT", "port of the first broker (default: a free port for each)"),
        KAFKA_VERSION,
        SET,
        CONFIG,
        CLOCK,
        DATA_DIR,
        DURABILITY,
        REPAIR,
    ),
)
COMMANDS = {"serve": SERVE, "run": RUN}
ALL_COMMANDS = "use run, serve, log or scenario, see kproto --help"

HELP = """usage: kproto COMMAND [options]

A Kafka broker for people who test and check Kafka clients.

commands:
  run [options] -- COMMAND  run a command beside a broker, then report on its clients
  serve [options]           run a broker until Ctrl-C
  log dump DIR              print a log of the offsets topic, of kproto or Kafka
  log verify DIR            check such a log
  scenario run NAME         invalidate a consumer's offset and report where it continues

kproto COMMAND --help lists a command's options, kproto --version prints the version.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (``sys.argv`` by default); return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _command(words)
    except HelpRequested as help_requested:
        write(sys.stdout, str(help_requested))
        return 0
    except CommandLineError as error:
        write(sys.stderr, f"{error}\n")
        return USAGE_ERROR
    except KeyboardInterrupt:  # before the command starts, or after it ends
        return INTERRUPTED


def _command(words: list[str]) -> int:
    match words:
        case ["--version"]:
            from importlib.metadata import version

            write(sys.stdout, f"kproto {version('kproto')}\n")
            return 0
        case ["-h" | "--help" | "help"]:
            raise HelpRequested(HELP)
        case ["help", ("serve" | "run") as name]:
            raise HelpRequested(COMMANDS[name].help())
        case ["serve", *rest]:
            return _serve(rest)
        case ["run", *rest]:
            return _run(rest)
        case ["log", *rest]:
            return _log(rest)
        case ["help", "log", *rest]:
            return _log(["help", *rest])
        case ["scenario", *rest]:
            return _scenario(rest)
        case ["help", "scenario", *rest]:
            return _scenario(["help", *rest])
        case []:
            raise CommandLineError(f"kproto: no command given: {ALL_COMMANDS}")
    raise CommandLineError(f"kproto: no command {words[0]!r}: {ALL_COMMANDS}")


def _log(words: list[str]) -> int:
    from kproto_server.commandline.log import log

    return log(words)


def _scenario(words: list[str]) -> int:
    from kproto_server.commandline.scenario import scenario

    return scenario(words)


def _serve(words: list[str]) -> int:
    options = serve_options(words)

    from kproto_server.commandline.serve import serve

    return _with_one_line_errors(SERVE, lambda: serve(options))


def _run(words: list[str]) -> int:
    options = run_options(words)

    from kproto_server.commandline.run import CannotRun, run

    try:
        return _with_one_line_errors(RUN, lambda: run(options))
    except CannotRun as error:
        write(sys.stderr, f"{RUN.error(str(error))}\n")
        return error.exit_code


def _with_one_line_errors(command: Command, action: Callable[[], int]) -> int:
    """Return the result of an action that starts a broker.

    Raises:
        CommandLineError: an address is in use, or the data directory cannot be used.
    """
    from kproto.errors import LogError
    from kproto_server.network.listening import CannotListen

    try:
        return action()
    except CannotListen as error:
        raise command.error(str(error)) from None
    except LogError as error:
        raise command.error(f"--data-dir: {error}") from None


def serve_options(words: Sequence[str]) -> ServeOptions:
    """Parse the arguments after ``kproto serve``.

    Raises:
        CommandLineError: an argument is wrong.
        HelpRequested: the arguments include ``--help``.
    """
    from kproto_server.commandline.options import ServeOptions

    given, _ = SERVE.parse(words)
    kafka_version = _kafka_version(SERVE, given)
    brokers = _brokers(SERVE, given)
    port_file = _last(given, "--port-file")
    if port_file is not None:
        _check_writable(SERVE, "--port-file", port_file)
    return ServeOptions(
        kafka_version=kafka_version,
        settings=_settings(SERVE, given, kafka_version),
        clock=_clock(SERVE, given),
        host=_last(given, "--host") or DEFAULT_HOST,
        port=_port(SERVE, given, brokers, DEFAULT_PORT),
        port_file=port_file,
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
    import os

    try:
        existed = os.path.exists(path)
        with open(path, "ab"):
            pass
        if not existed:
            os.remove(path)
    except OSError as error:
        raise command.error(f"{name}: can't write {path!r}: {error.strerror}") from None
