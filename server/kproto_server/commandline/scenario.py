"""`kproto scenario`: its command lines, and how they end.

Exit codes: 0; 1 where --fail-on-skipped was given and records were skipped; 2 for a mistake on the command line.
"""

from __future__ import annotations

import sys

from kproto_server.commandline.arguments import Command, HelpRequested, Option, UsageError, whole_number
from kproto_server.commandline.output import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.scenarios.accidents import Accident
    from kproto_server.scenarios.lab import Findings

SKIPPED = 1
TIMEOUT_S = 30
TIMEOUT_MAX_S = 3600
ALL = "all"

RUN = Command(
    "scenario run",
    "Have an accident happen to the offsets of a group, start a consumer of that group, and tell where it goes, and\n"
    "what it skips or reads again. NAME is one that kproto scenario list tells, or all.",
    "NAME",
    (
        Option(
            "--client",
            "CMD",
            "the consumer, as for a shell; it finds KAFKA_BOOTSTRAP_SERVERS, KPROTO_TOPIC and\n"
            "KPROTO_GROUP in its environment, reads until SIGTERM, and commits as it likes",
        ),
        Option("--kafka-version", "RELEASE", "behave as this release, 0.8.2 to 4.4 (default: latest)"),
        Option("--report", "FILE", "write a page with pictures: .html"),
        Option("--timeout", "SECONDS", f"for each, until the client is stopped (default {TIMEOUT_S})"),
        Option("--fail-on-skipped", "", "exit with 1 if a record was skipped"),
    ),
)

HELP = """usage: kproto scenario COMMAND

What a consumer does when its committed offset is of no use any more.

commands:
  list        the accidents that there are
  run NAME    have one happen to a client

kproto scenario run --help tells its options.
"""


def scenario(words: Sequence[str]) -> int:
    """Do what stands after ``kproto scenario``; return the exit code.

    Raises:
        UsageError: with one line for the user.
        HelpAsked: with the help.
    """
    match list(words):
        case ["-h" | "--help" | "help"]:
            raise HelpRequested(HELP)
        case ["help", "run"]:
            raise HelpRequested(RUN.help())
        case ["help", "list"] | ["list", "-h" | "--help"]:
            raise HelpRequested("usage: kproto scenario list\n\nTell the accidents that there are.\n")
        case ["list"]:
            return _list()
        case ["run", *rest]:
            return _run(rest)
        case []:
            raise UsageError("kproto scenario: no command given: use list or run, see kproto scenario --help")
    raise UsageError(f"kproto scenario: no command {words[0]!r}: use list or run, see kproto scenario --help")


def _list() -> int:
    from kproto_server.scenarios.accidents import ACCIDENTS

    width = max(map(len, ACCIDENTS))
    write(sys.stdout, "".join(f"{one.name.ljust(width)}  {one.what}\n" for one in ACCIDENTS.values()))
    return 0


def _run(words: Sequence[str]) -> int:
    # The name may come before the options, as in its usage, or behind them.
    first = [words[0]] if words and not words[0].startswith("-") else []
    given, rest = RUN.parse(words[len(first) :])
    names = [*first, *rest]
    if len(names) != 1:
        raise RUN.error("give one NAME, see kproto scenario list")
    accidents = _accidents(names[0])
    command = _command(given)
    kafka_version = _kafka_version(given)
    timeout_s = _timeout(given)
    path = given["--report"][-1] if "--report" in given else None
    if path is not None and not path.endswith(".html"):
        raise RUN.error(f"--report can't be {path!r}: its name has to end with .html")

    found = [_one(accident, command, kafka_version, timeout_s) for accident in accidents]
    from kproto_server.scenarios import text

    write(sys.stdout, text.render(found))
    if path is not None:
        _write(found, path)
    skipped = any(outcome.skipped for findings in found for outcome in findings.outcomes)
    return SKIPPED if skipped and "--fail-on-skipped" in given else 0


def _one(accident: Accident, command: list[str], kafka_version: str, timeout_s: int) -> Findings:
    from kproto_server.scenarios.lab import CannotStart, run_accident

    write(sys.stderr, f"{accident.name} ...\n")
    try:
        return run_accident(accident, command, kafka_version=kafka_version, timeout_s=timeout_s)
    except CannotStart as error:
        raise RUN.error(f"--client: {error}") from None


def _accidents(name: str) -> list[Accident]:
    from kproto_server.scenarios.accidents import ACCIDENTS

    if name == ALL:
        return list(ACCIDENTS.values())
    if name not in ACCIDENTS:
        raise RUN.error(f"there is no {name!r}: use {', '.join(ACCIDENTS)} or {ALL}")
    return [ACCIDENTS[name]]


def _command(given: dict[str, list[str]]) -> list[str]:
    import shlex

    if "--client" not in given:
        raise RUN.error("give the consumer: --client CMD")
    try:
        words = shlex.split(given["--client"][-1])
    except ValueError as error:
        raise RUN.error(f"--client: {error}") from None
    if not words:
        raise RUN.error("--client is empty: give a command")
    return words


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


def _write(found: list[Findings], path: str) -> None:
    from kproto_server.scenarios import page

    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page.render(found))
    except OSError as error:
        raise RUN.error(f"--report: can't write {path!r}: {error.strerror}") from None
