"""`kproto conform`: its command line and exit codes.

Exit codes: 0; 1 if a case has the grade of --fail-on or a worse one, and the baseline does not have it; 2 for an error
on the command line, or a client that does not do what the cases build on.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kproto import output_file
from kproto_server.commandline.arguments import Command, Option, subcommand, whole_number
from kproto_server.commandline.output import write
from kproto_server.commandline.parsing import address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from kproto_server.conformance.cases import ClientCase
    from kproto_server.conformance.reports import ClientReport
    from kproto_server.conformance.verdict import Grade, Verdict

    T = TypeVar("T")

BAD = 1
TIMEOUT_S = 30
TIMEOUT_MAX_S = 3600
JOBS_MAX = 64
FAIL_ON = ("fail", "degraded")
SUFFIXES = (".html", ".json", ".svg", ".xml")

CLIENT = Command(
    "conform client",
    "Run a program with a Kafka client in named cases, each with one fault or another broker, and say for each\n"
    "whether it recovers: pass, degraded, fail, or not offered by the client. The program copies the records of\n"
    "KPROTO_TOPIC to KPROTO_OUTPUT_TOPIC in the group KPROTO_GROUP, at KAFKA_BOOTSTRAP_SERVERS, commits, and runs\n"
    "until SIGTERM.",
    "-- COMMAND [ARGUMENT ...]",
    (
        Option("--list", "", "list the cases with their references, and run none"),
        Option("--only", "NAME,...", "these cases, and those whose names begin so: offset-commit,rebalance"),
        Option("--jobs", "N", "run this many cases at once (default: the number of processors)"),
        Option("--timeout", "SECONDS", f"how long the client may take in each case (default {TIMEOUT_S})"),
        Option("--fail-on", "GRADE", "exit with 1 from this grade on: fail (default) or degraded"),
        Option("--baseline", "FILE", "a .json report of before: what was as bad there does not count for --fail-on"),
        Option(
            "--report",
            "FILE",
            "write the verdicts: .html, .json, .xml for JUnit, or .svg, a badge; may be\nrepeated",
            repeats=True,
        ),
        Option("--quiet", "", "print no table"),
    ),
)
BROKER = Command(
    "conform broker",
    "Send named cases to a broker, each a request in every version or a hostile frame, and compare its responses\n"
    "with those recorded from a release of Kafka. The broker is the only one of its cluster; the topic and the groups\n"
    "begin with kproto-conform- and are deleted at the end.",
    "HOST:PORT",
    (
        Option("--as", "RELEASE", "compare with this release (default: the one whose ApiVersions response is nearest)"),
        Option("--timeout", "SECONDS", f"how long to wait for each response (default {TIMEOUT_S})"),
        Option("--baseline", "FILE", "a .json report of before: a case that failed there does not count as failed"),
        Option("--harmless", "", "leave out the hostile frames, by which a broker may end"),
        *(CLIENT.options[name] for name in ("--list", "--only", "--report", "--quiet")),
    ),
)
COMMANDS = {"client": CLIENT, "broker": BROKER}

HELP = """usage: kproto conform COMMAND

Find out what a Kafka client does with faults, moves and old and new brokers, or how far a broker is like a release.

commands:
  client      run a program with a client in named cases, and grade it
  broker      send named cases to a broker, and compare it with a release

kproto conform client --help and kproto conform broker --help list the options.
"""


def conform(arguments: Sequence[str]) -> int:
    """Run ``kproto conform`` with these arguments; return the exit code.

    Raises:
        CommandLineError: the command line is wrong.
        HelpRequested: the command line asks for help.
    """
    name, rest = subcommand("conform", HELP, COMMANDS, arguments)
    return {"client": _client, "broker": _broker}[name](rest)


def _client(arguments: Sequence[str]) -> int:
    from kproto_server.conformance.cases import CASES

    given, command = CLIENT.parse(arguments)
    cases = _cases(CLIENT, given, CASES)
    if "--list" in given:
        return _list(cases)
    if not command:
        raise CLIENT.error("give the client's command: -- COMMAND [ARGUMENT ...]")
    fail_on = _fail_on(given)
    jobs = (
        whole_number(CLIENT, "--jobs", given["--jobs"][-1], 1, JOBS_MAX) if "--jobs" in given else os.cpu_count() or 1
    )
    timeout_s = TIMEOUT_S
    if "--timeout" in given:
        timeout_s = whole_number(CLIENT, "--timeout", given["--timeout"][-1], 1, TIMEOUT_MAX_S)
    baseline = _baseline(given["--baseline"][-1]) if "--baseline" in given else {}
    paths = [_report_path(path) for path in given.get("--report", [])]
    return _show(_run(cases, command, jobs, timeout_s), given, paths, fail_on, baseline)


def _broker(arguments: Sequence[str]) -> int:
    from kproto_server.conformance.broker_cases import BROKER_CASES
    from kproto_server.conformance.broker_expectations import expectations
    from kproto_server.conformance.broker_report import run_on_broker
    from kproto_server.conformance.broker_run import BrokerNotUsable
    from kproto_server.conformance.verdict import Grade

    if arguments and not arguments[0].startswith("-"):
        arguments = [*arguments[1:], arguments[0]]  # the address may stand before the options or after them
    given, rest = BROKER.parse(arguments)
    cases = _cases(BROKER, given, BROKER_CASES)
    if "--harmless" in given:
        cases = [case for case in cases if not case.is_hostile]
        if not cases:
            raise BROKER.error("--harmless leaves out all cases of --only")
    if "--list" in given:
        write(sys.stdout, "".join(f"{each.name}\n    {each.text}\n    {each.shown_reference}\n" for each in cases))
        return 0
    if len(rest) != 1:
        raise BROKER.error("give the broker's address: HOST:PORT")
    host, port = address(BROKER, "the broker", rest[0], "HOST:PORT")
    release = given["--as"][-1] if "--as" in given else None
    if release is not None and release not in expectations():
        raise BROKER.error(f"--as can't be {release!r}: use one of {', '.join(expectations())}")
    timeout_s = TIMEOUT_S
    if "--timeout" in given:
        timeout_s = whole_number(BROKER, "--timeout", given["--timeout"][-1], 1, TIMEOUT_MAX_S)
    baseline = _baseline(given["--baseline"][-1], BROKER) if "--baseline" in given else {}
    paths = [_report_path(path, BROKER) for path in given.get("--report", [])]
    try:
        report = run_on_broker(cases, host, port, release=release, timeout_s=timeout_s)
    except BrokerNotUsable as error:
        raise BROKER.error(str(error)) from None
    return _show(report, given, paths, Grade.FAIL, baseline)


def _show(
    report: ClientReport, given: dict[str, list[str]], paths: Sequence[str], fail_on: Grade, baseline: dict[str, Grade]
) -> int:
    from kproto_server.conformance import reports

    if "--quiet" not in given:
        write(sys.stdout, reports.as_text(report))
    for path in paths:
        text = _rendered(report, path, fail_on)
        _with_path(path, lambda path=path, text=text: output_file.write(path, text))  # type: ignore[misc]
    return BAD if any(reports.regressions(report, fail_on, baseline)) else 0


def _run(cases: Sequence[ClientCase], command: Sequence[str], jobs: int, timeout_s: int) -> ClientReport:
    from kproto_server.client_process import ClientNotStarted
    from kproto_server.conformance.all_cases import ClientDoesNotCopy, run_cases

    def show(verdict: Verdict, left: int) -> None:
        if sys.stderr.isatty():
            write(sys.stderr, f"\r\x1b[K{verdict.case.name}: {verdict.grade}, {left} left" + ("" if left else "\n"))
        else:
            write(sys.stderr, f"{verdict.case.name}: {verdict.grade}, {left} left\n")

    try:
        return run_cases(cases, command, jobs=jobs, timeout_s=timeout_s, on_verdict=show)
    except (ClientNotStarted, ClientDoesNotCopy) as error:
        raise CLIENT.error(str(error)) from None


def _rendered(report: ClientReport, path: str, fail_on: Grade) -> str:
    from kproto_server.conformance import html_report, reports

    if path.endswith(".json"):
        return reports.as_json(report)
    if path.endswith(".xml"):
        return reports.as_junit(report, fail_on)
    return html_report.render(report) if path.endswith(".html") else html_report.badge(report)


def _cases(command: Command, given: dict[str, list[str]], cases: Mapping[str, T]) -> list[T]:
    from kproto_server.conformance.cases import chosen

    names = [name.strip() for name in given["--only"][-1].split(",")] if "--only" in given else []
    try:
        return chosen(names, cases)
    except KeyError as error:
        raise command.error(f"--only: no case {error.args[0]!r}: kproto {command.name} --list names them") from None


def _list(cases: Sequence[ClientCase]) -> int:
    lines = [f"{each.name}\n    {each.text}\n    {each.reference}\n" for each in cases]
    write(sys.stdout, "".join(lines))
    return 0


def _fail_on(given: dict[str, list[str]]) -> Grade:
    from kproto_server.conformance.verdict import Grade

    name = given["--fail-on"][-1] if "--fail-on" in given else FAIL_ON[0]
    if name not in FAIL_ON:
        raise CLIENT.error(f"--fail-on can't be {name!r}: use {' or '.join(FAIL_ON)}")
    return Grade(name)


def _baseline(path: str, of: Command = CLIENT) -> dict[str, Grade]:
    from kproto_server.conformance.reports import NoBaseline, graded_in

    try:
        return graded_in(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise of.error(f"--baseline: can't read {path!r}: {error.strerror}") from None
    except (NoBaseline, UnicodeDecodeError) as error:
        raise of.error(f"--baseline: {path!r}: {error}") from None


def _report_path(path: str, of: Command = CLIENT) -> str:
    if not path.endswith(SUFFIXES):
        raise of.error(f"--report can't be {path!r}: its name has to end with {', '.join(SUFFIXES)}")
    _with_path(path, lambda: output_file.check_writable(path), of)
    return path


def _with_path(path: str, action: Callable[[], object], of: Command = CLIENT) -> None:
    try:
        action()
    except OSError as error:
        raise of.error(f"--report: can't write {path!r}: {error.strerror}") from None
