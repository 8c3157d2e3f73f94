"""The command lines of `kproto log report`, `retention`, `watch` and `kproto report merge`: jobs of `kproto.spark`.

They run on its embedded engine if the input is small enough, which starts no Java. Exit codes: 0; 1 if `kproto log
watch` found something; 2 with one line for a wrong command line, a damaged log or a missing package.
"""

from __future__ import annotations

from kproto_server.commandline.arguments import Command, Option, subcommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OUTPUT = Option("--output", "FILE", "the file to write, also -o FILE")
_ROWS = (
    _OUTPUT,
    Option("--format", "FORMAT", "table, csv, jsonl or parquet, which writes a directory (default table)"),
    Option("--limit", "N", "only the first N rows"),
)
_RETENTION = Option("--retention-minutes", "N", "offsets.retention.minutes of the brokers (default 10080, Kafka's own)")
_AT = Option("--at", "TIME", "the time of the question: end (of the log, the default), now, or 2026-11-21T09:30:00")
_GROUP = Option("--group", "ID", "only this group; repeatable", repeats=True)
_ENGINE = Option(
    "--engine",
    "ENGINE",
    "embedded: in this process (kproto[logs]); spark: for inputs of any size (kproto[spark]);\n"
    "auto: embedded up to 64 MiB (default auto)",
)

REPORT = Command(
    "log report",
    "Write what an offsets log says about groups on a page of HTML: retention, expiring offsets, lag, rates, rewinds.\n"
    "DIR is a log.dir, kproto's or Kafka's, the directory of a partition of __consumer_offsets, or of tables. Several\n"
    "log.dirs, a glob in quotes, or a file with a path on each line are those of many brokers.",
    "DIR [DIR ...]",
    (
        _OUTPUT,
        _RETENTION,
        Option("--kafka-version", "VERSION", "the version whose brokers expire the offsets (default: the newest)"),
        _AT,
        Option("--minutes", "N", "how long a stalled offset must not have moved (default 60)"),
        _GROUP,
        _ENGINE,
    ),
)
WATCH = Command(
    "log watch",
    "Print the groups that need attention now, by rules: offsets that expire soon, stalled offsets, rewinds, lag.\n"
    "Exits with 1 if there are any. DIR is as for kproto log report.",
    "DIR [DIR ...]",
    (
        Option("--rules", "FILE", "the rules, YAML (default: expiring in 24 h, stalled for 60 min, rewinds in 24 h)"),
        Option("--format", "FORMAT", "lines, json, prometheus or chat, which is one line (default lines)"),
        Option("--output", "FILE", "a file, replaced in one rename; also -o FILE"),
        _AT,
        _GROUP,
        _ENGINE,
    ),
)
RETENTION = Command(
    "log retention",
    "Print the offsets.retention.minutes that each group needs when KIP-211 drops the overrides of clients.\n"
    "DIR is as for kproto log report.",
    "DIR [DIR ...]",
    (*_ROWS, _RETENTION, _GROUP, _ENGINE),
)
MERGE = Command(
    "report merge",
    "Print the client versions in several request reports (kproto run --report FILE.json), and in what kproto audit\n"
    "reads: whether a Kafka release serves them, and in how many of the files they are. FILE may be a directory.",
    "FILE [FILE ...]",
    (
        Option("--kafka-version", "RELEASE", "the release of the brokers, for logs older than 2.8"),
        Option("--target", "RELEASE", "of logs, captures and metrics: what would break there (default: the newest)"),
        *_ROWS,
        _ENGINE,
    ),
)
COMMANDS = {"merge": MERGE}
JOBS: Mapping[str, str] = {"retention-audit": "retention", "versions": "merge"}
"""The commands of jobs that have other names."""

HELP = """usage: kproto report COMMAND [options] FILE [FILE ...]

Read the request reports of kproto run, audit and proxy.

commands:
  merge  print the client versions in all of them

kproto report COMMAND --help lists the options.
"""


def report(arguments: Sequence[str]) -> int:
    """Run the command after ``kproto report``; return the exit code.

    Raises:
        CommandLineError: with one line for the user.
        HelpRequested: with the help.
    """
    _, rest = subcommand("report", HELP, COMMANDS, arguments)
    return run_job(MERGE, "versions", rest)


def run_job(command: Command, job: str, arguments: Sequence[str]) -> int:
    """Run a job with the options of its command before and after the paths; return the exit code.

    Raises:
        CommandLineError: with one line for the user.
        HelpRequested: with the help.
    """
    flags: list[str] = []
    paths: list[str] = []
    rest = [_OUTPUT.name if word == "-o" else word for word in arguments]
    while rest:
        given, rest = command.parse(rest)
        flags += [f"{name}={value}" for name, values in given.items() for value in values]
        paths += rest[:1]
        rest = rest[1:]
    if not paths:
        raise command.error(f"no input given: write kproto {command.name} {command.rest}")

    try:
        from kproto.spark.arguments import Program
        from kproto.spark.cli import main
        from kproto.spark.engine import EMBEDDED
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("kproto.spark"):
            raise
        reason = "the executable does not contain it"
        raise command.error(f"needs kproto.spark: pip install 'kproto[logs]' ({reason})") from None
    group = command.name.partition(" ")[0]
    return main([job, *flags, "--", *paths], Program(f"kproto {group}", EMBEDDED, JOBS))
