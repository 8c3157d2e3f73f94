"""`kproto scenario`: its command lines and exit codes.

Exit codes: 0; 1 if --fail-on-skipped is given and a record was skipped; 2 for an error on the command line; 3 if the
client crashed, so that nothing is known about its start position.
"""

from __future__ import annotations

import sys

from kproto import output_file
from kproto_server.commandline.arguments import Command, Option, subcommand, whole_number
from kproto_server.commandline.output import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto.errors import CommandLineError
    from kproto_server.scenarios.failure_scenarios import FailureScenario
    from kproto_server.scenarios.runner import ScenarioResult

SKIPPED = 1
CRASHED = 3
TIMEOUT_S = 30
TIMEOUT_MAX_S = 3600
ALL = "all"

RUN = Command(
    "scenario run",
    "Apply a failure scenario to the committed offset of a group, start a consumer of that group, and report where it\n"
    "starts and which records it skips or reads again. NAME is a name from kproto scenario list, or all.",
    "NAME",
    (
        Option(
            "--client",
            "CMD",
            "the consumer's command line, in shell syntax; its environment has KAFKA_BOOTSTRAP_SERVERS,\n"
            "KPROTO_TOPIC and KPROTO_GROUP; it reads until SIGTERM and may commit",
        ),
        Option("--kafka-version", "RELEASE", "behave as this release, 0.8.2 to 4.4 (default: latest)"),
        Option("--report", "FILE", "write a page with a picture of each log: .html"),
        Option("--timeout", "SECONDS", f"stop the client after this time, per scenario (default {TIMEOUT_S})"),
        Option("--fail-on-skipped", "", "exit with 1 if a record was skipped (3: the client crashed)"),
    ),
)

LIST = Command("scenario list", "List the failure scenarios.", "", ())
COMMANDS = {"list": LIST, "run": RUN}

HELP = """usage: kproto scenario COMMAND

Find out what a consumer does when its committed offset is missing or invalid.

commands:
  list        list the failure scenarios
  run NAME    run a client in one of them

kproto scenario run --help lists the options.
"""


def scenario(arguments: Sequence[str]) -> int:
    """Run ``kproto scenario`` with these arguments; return the exit code.

    Raises:
        CommandLineError: the command line is wrong.
        HelpRequested: the command line asks for help.
    """
    name, rest = subcommand("scenario", HELP, COMMANDS, arguments)
    return {"list": _list, "run": _run}[name](rest)


def _list(arguments: Sequence[str]) -> int:
    LIST.parse(arguments)
    from kproto_server.scenarios.failure_scenarios import SCENARIOS

    width = max(map(len, SCENARIOS))
    write(sys.stdout, "".join(f"{each.name.ljust(width)}  {each.description}\n" for each in SCENARIOS.values()))
    return 0


def _run(arguments: Sequence[str]) -> int:
    # The name stands before the options, as in the usage, or after them.
    first = [arguments[0]] if arguments and not arguments[0].startswith("-") else []
    given, rest = RUN.parse(arguments[len(first) :])
    names = [*first, *rest]
    if len(names) != 1:
        raise RUN.error("give one NAME, see kproto scenario list")
    scenarios = _scenarios(names[0])
    command = _command(given)
    kafka_version = _kafka_version(given)
    timeout_s = _timeout(given)
    path = given["--report"][-1] if "--report" in given else None
    if path is not None and not path.endswith(".html"):
        raise RUN.error(f"--report can't be {path!r}: its name has to end with .html")
    if path is not None:
        _check_writable(path)

    results = [_run_one(each, command, kafka_version, timeout_s) for each in scenarios]
    from kproto_server.scenarios import text_report

    write(sys.stdout, text_report.render(results))
    if path is not None:
        _write_page(results, path)
    if "--fail-on-skipped" in given and any(result.skipped for result in results):
        return SKIPPED
    return CRASHED if any(result.has_crashed for result in results) else 0


def _run_one(each: FailureScenario, command: list[str], kafka_version: str, timeout_s: int) -> ScenarioResult:
    from kproto_server.client_process import ClientNotStarted
    from kproto_server.scenarios.runner import run_scenario

    write(sys.stderr, f"{each.name} ...\n")
    try:
        return run_scenario(each, command, kafka_version=kafka_version, timeout_s=timeout_s)
    except ClientNotStarted as error:
        raise RUN.error(f"--client: {error}") from None


def _scenarios(name: str) -> list[FailureScenario]:
    from kproto_server.scenarios.failure_scenarios import SCENARIOS

    if name == ALL:
        return list(SCENARIOS.values())
    if name not in SCENARIOS:
        raise RUN.error(f"no scenario {name!r}: use {', '.join(SCENARIOS)} or {ALL}")
    return [SCENARIOS[name]]


def _command(given: dict[str, list[str]]) -> list[str]:
    import shlex

    if "--client" not in given:
        raise RUN.error("give the consumer's command: --client CMD")
    try:
        command = shlex.split(given["--client"][-1])
    except ValueError as error:
        raise RUN.error(f"--client: {error}") from None
    if not command:
        raise RUN.error("--client is empty: give a command")
    return command


def _kafka_version(given: dict[str, list[str]]) -> str:
    from kproto_server.releases.kafka_version import KafkaVersion

    name = given["--kafka-version"][-1] if "--kafka-version" in given else "latest"
    try:
        KafkaVersion.named(name)
    except ValueError as error:
        raise RUN.error(f"--kafka-version: {error}") from None
    return name


def _timeout(given: dict[str, list[str]]) -> int:
    if "--timeout" not in given:
        return TIMEOUT_S
    return whole_number(RUN, "--timeout", given["--timeout"][-1], 1, TIMEOUT_MAX_S)


def _write_page(results: list[ScenarioResult], path: str) -> None:
    from kproto_server.scenarios import html_report

    try:
        output_file.write(path, html_report.render(results))
    except OSError as error:
        raise _not_writable(path, error) from None


def _check_writable(path: str) -> None:
    try:
        output_file.check_writable(path)
    except OSError as error:
        raise _not_writable(path, error) from None


def _not_writable(path: str, error: OSError) -> CommandLineError:
    return RUN.error(f"--report: can't write {path!r}: {error.strerror}")
