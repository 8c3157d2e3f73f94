"""The command ``kproto``: checks the whole command line before anything starts.

Exit codes: 2 for a mistake on the command line, with one line that says what to do; otherwise `kproto run` exits with
the code of its command. A subcommand imports only the modules it needs, because `kproto serve` must listen early.
"""

from __future__ import annotations

import sys

from kproto.errors import CommandLineError
from kproto_server.commandline.arguments import Command, HelpRequested
from kproto_server.commandline.commands import COMMANDS, COMPLETION, PROXY, RUN, SERVE
from kproto_server.commandline.output import write
from kproto_server.commandline.parsing import audit_options, proxy_options, run_options, serve_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

USAGE_ERROR = 2
INTERRUPTED = 130
ALL_COMMANDS = (
    "use run, serve, audit, proxy, capture, replay, diff, log, report, scenario, conform or completion, "
    "see kproto --help"
)

HELP = """usage: kproto COMMAND [options]

A Kafka broker for people who test and check Kafka clients.

commands:
  run [options] -- COMMAND  run a command beside a broker, then report on its clients
  serve [options]           run a broker until Ctrl-C
  audit FILE...             report on clients from request logs or captured traffic
  proxy --upstream BROKER   report on the clients of a real cluster from in front of it
  capture FILE...           copy the connections of Kafka out of captured traffic
  replay FILE HOST:PORT     send captured requests to a broker and compare its responses
  diff A B                  compare the responses in two captures
  log dump DIR              print a coordinator's log, of kproto or Kafka
  log verify DIR            check such a log
  log export DIR            write its rows as Parquet or Arrow
  log collect DIR           copy the logs of a running broker
  log report DIR            write what it says about groups on a page of HTML
  log retention DIR         print the retention that each group needs (KIP-211)
  log watch DIR             print the groups that need attention now, by rules
  report merge FILE...      print the client versions in several reports
  scenario list             list the failure scenarios
  scenario run NAME         invalidate a consumer's offset and report where it continues
  conform client -- COMMAND grade a client: faults, moves, old and new brokers
  conform broker HOST:PORT  compare a broker with a release of Kafka
  completion bash|zsh|fish  print the completion of this command line

kproto COMMAND --help lists a command's options; kproto -V, --version prints the version.
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
        case ["-V" | "--version"]:
            from importlib.metadata import version

            write(sys.stdout, f"kproto {version('kproto')}\n")
            return 0
        case ["-h" | "--help" | "help"]:
            raise HelpRequested(HELP)
        case ["help", name] if name in COMMANDS:
            raise HelpRequested(COMMANDS[name].help())
        case ["completion", *rest]:
            return _completion(rest)
        case ["serve", *rest]:
            return _serve(rest)
        case ["run", *rest]:
            return _run(rest)
        case ["audit", *rest]:
            return _audit(rest)
        case ["proxy", *rest]:
            return _proxy(rest)
        case ["capture", *rest]:
            from kproto_server.commandline.capture import capture

            return capture(rest)
        case ["replay", *rest]:
            from kproto_server.commandline.replay import replay

            return replay(rest)
        case ["diff", *rest]:
            from kproto_server.commandline.replay import diff

            return diff(rest)
        case ["log", *rest]:
            return _log(rest)
        case ["help", "log", *rest]:
            return _log(["help", *rest])
        case ["report", *rest]:
            return _report(rest)
        case ["help", "report", *rest]:
            return _report(["help", *rest])
        case ["scenario", *rest]:
            return _scenario(rest)
        case ["help", "scenario", *rest]:
            return _scenario(["help", *rest])
        case ["conform", *rest]:
            return _conform(rest)
        case ["help", "conform", *rest]:
            return _conform(["help", *rest])
        case ["watch-processes"]:  # `process_tree.WATCH`, without an import
            from kproto_server.process_tree import main as watch

            watch()
            return 0
        case []:
            raise CommandLineError(f"kproto: no command given: {ALL_COMMANDS}")
    raise CommandLineError(f"kproto: no command {words[0]!r}: {ALL_COMMANDS}")


def _completion(words: list[str]) -> int:
    _, shells = COMPLETION.parse(words)
    if len(shells) != 1:
        raise COMPLETION.error("name one interpreter: bash, zsh or fish")

    from kproto_server.commandline.completion import completion

    write(sys.stdout, completion(shells[0]))
    return 0


def _log(words: list[str]) -> int:
    from kproto_server.commandline.log import log

    return log(words)


def _report(words: list[str]) -> int:
    from kproto_server.commandline.jobs import report

    return report(words)


def _scenario(words: list[str]) -> int:
    from kproto_server.commandline.scenario import scenario

    return scenario(words)


def _conform(words: list[str]) -> int:
    from kproto_server.commandline.conform import conform

    return conform(words)


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


def _audit(words: list[str]) -> int:
    options = audit_options(words)

    from kproto_server.commandline.audit import audit

    return audit(options)


def _proxy(words: list[str]) -> int:
    options = proxy_options(words)

    from kproto_server.commandline.proxy import proxy

    return _with_one_line_errors(PROXY, lambda: proxy(options))


def _with_one_line_errors(command: Command, action: Callable[[], int]) -> int:
    """Return the result of an action that starts a broker or a proxy.

    Raises:
        CommandLineError: an address is in use, or the data directory or that of TLS cannot be used.
    """
    from kproto.errors import LogError, UsageError
    from kproto_server.network.listening import CannotListen

    try:
        return action()
    except (CannotListen, UsageError) as error:
        raise command.error(str(error)) from None
    except LogError as error:
        raise command.error(f"--data-dir: {error}") from None
