"""The command lines of `kproto log dump`, `verify`, `export` and `collect`; `jobs` has those of the others.

Exit codes: 0; 1 for a damaged log; 2 for a wrong command line, or a package that is not installed. Codes 1 and 2 come
with one line on standard error.
"""

from __future__ import annotations

import sys

from kproto_server.commandline.arguments import Command, Option, last, subcommand, whole_number
from kproto_server.commandline.jobs import REPORT, RETENTION, WATCH, run_job
from kproto_server.commandline.output import discard, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto.logs.files import PartitionDirectory

    Given = dict[str, list[str]]

DAMAGED = 1
PIPE_CLOSED = 141
"""As a shell reports a program that SIGPIPE ended: the reader of the output closed it."""
PARTITION_MAX = 2**31 - 1

DUMP = Command(
    "log dump",
    "Print every batch and record of a coordinator's log, kproto's or Kafka's.\n"
    "DIR is the directory of a partition of __consumer_offsets, __transaction_state or __share_group_state,\n"
    "a log.dir that holds such directories, or a segment file.",
    "DIR",
    (
        Option("--format", "FORMAT", "text, or jsonl: a line of JSON for each batch and record (default text)"),
        Option("--partition", "N", "only this partition"),
    ),
)
VERIFY = Command(
    "log verify",
    "Check every invariant of a coordinator's log, kproto's or Kafka's.\n"
    "Exits with 1 at the first violation and prints its position. DIR is as for kproto log dump.",
    "DIR",
    (Option("--partitions", "N", "the partition count of __consumer_offsets (default: found out from the log.dir)"),),
)
EXPORT = Command(
    "log export",
    "Write the rows of a coordinator's log, kproto's or Kafka's, to a file for DuckDB, polars or pandas.\n"
    "Needs kproto[arrow]. kproto.arrow.schemas describes the columns. DIR is as for kproto log dump.",
    "DIR",
    (
        Option("--output", "FILE", "the file to write, completely or not at all: NAME.parquet or NAME.arrow"),
        Option(
            "--table",
            "TABLE",
            "commits, group_metadata, log_batches (of all topics), share_states (of __share_group_state),\n"
            "or latest: the offsets at the end of the log (default commits)",
        ),
        Option("--partition", "N", "only this partition"),
    ),
)
COLLECT = Command(
    "log collect",
    "Copy from a broker's log.dir what the other commands read, while the broker runs; the next time, what is new.\n"
    "The logs of coordinators are copied up to their last whole batch, of other topics the last batches (for lag).\n"
    "Nothing is locked or written in DIR.",
    "DIR",
    (
        Option(
            "--to",
            "DIRECTORY",
            "the copy, in the layout of a log.dir: new or empty, or an earlier copy of DIR, or a URI",
        ),
    ),
)
COMMANDS = {
    "dump": DUMP,
    "verify": VERIFY,
    "export": EXPORT,
    "collect": COLLECT,
    "report": REPORT,
    "retention": RETENTION,
    "watch": WATCH,
}

HELP = """usage: kproto log COMMAND [options] DIR

Inspect the logs of coordinators, as kproto and Kafka write them.

commands:
  dump       print every batch and record
  verify     check every invariant
  export     write its rows as Parquet or Arrow
  collect    copy what is new in a running broker's log.dir
  report     write what it says about groups on a page of HTML
  retention  print the retention that each group needs (KIP-211)
  watch      print the groups that need attention now, by rules

kproto log COMMAND --help lists the options.
"""


def log(arguments: Sequence[str]) -> int:
    """Run the command after ``kproto log``; return the exit code.

    Raises:
        CommandLineError: with one line for the user.
        HelpRequested: with the help.
    """
    name, rest = subcommand("log", HELP, COMMANDS, arguments)
    jobs = {"report": "report", "retention": "retention-audit", "watch": "watch"}
    if name in jobs:
        return run_job(COMMANDS[name], jobs[name], rest)
    return {"dump": _dump, "verify": _verify, "export": _export, "collect": _collect}[name](rest)


def _dump(arguments: Sequence[str]) -> int:
    given, path = _parse(DUMP, arguments)
    form = last(given, "--format") or "text"
    partition = _number(DUMP, given, "--partition", 0)

    from kproto_server.inspect.directory import find_logs
    from kproto_server.inspect.dump import FORMATS, dump

    if form not in FORMATS:
        raise DUMP.error(f"--format can't be {form!r}: use {' or '.join(FORMATS)}")
    if sys.stdout is None:  # standard output was closed before Python started
        raise DUMP.error("can't write: standard output is closed")

    def act() -> None:
        try:
            dump(find_logs(path, partition), form, write=sys.stdout.write, note=_note)
        finally:  # before the error line
            sys.stdout.flush()

    return _exit_code(DUMP, act)


def _verify(arguments: Sequence[str]) -> int:
    given, path = _parse(VERIFY, arguments)
    partitions = _number(VERIFY, given, "--partitions", 1)

    from kproto_server.inspect.directory import find_logs

    return _exit_code(VERIFY, lambda: _verify_logs(find_logs(path), partitions))


def _verify_logs(logs: list[PartitionDirectory], partitions: int | None) -> None:
    from kproto.logs.files import survey
    from kproto_server.inspect.progress import Progress
    from kproto_server.inspect.verify import verify

    progress = Progress(survey(logs).size, sys.stderr)

    def note(text: str) -> None:
        progress.clear()
        _note(text)

    try:
        verified = verify(logs, partitions=partitions, note=note, progress=progress.add)
    finally:
        progress.clear()
    write(sys.stdout, f"{verified}\n")


def _export(arguments: Sequence[str]) -> int:
    given, path = _parse(EXPORT, arguments)
    table = last(given, "--table") or "commits"
    partition = _number(EXPORT, given, "--partition", 0)
    output = last(given, "--output")
    try:
        from kproto_server.inspect import export
    except ModuleNotFoundError as error:
        if error.name not in ("numpy", "pyarrow"):
            raise
        raise EXPORT.error(f"needs {error.name}: pip install 'kproto[arrow]'") from None
    if output is None:
        raise EXPORT.error("no output file given: write --output FILE")
    if table not in export.TABLES:
        raise EXPORT.error(f"--table can't be {table!r}: use {' or '.join(export.TABLES)}")
    if not output.endswith(export.ENDINGS):
        raise EXPORT.error(f"--output can't be {output!r}: use the ending {' or '.join(export.ENDINGS)}")

    def act() -> None:
        write(sys.stdout, f"{export.export(path, table, partition, output, _note)}\n")

    return _exit_code(EXPORT, act)


def _collect(arguments: Sequence[str]) -> int:
    given, path = _parse(COLLECT, arguments)
    destination = last(given, "--to")
    if destination is None:
        raise COLLECT.error("no directory for the copy given: write --to DIRECTORY")

    from kproto.errors import UsageError
    from kproto.logs.locations import is_remote, local_path
    from kproto_server.inspect.collect import collect
    from kproto_server.inspect.progress import Progress

    def act() -> None:
        try:
            collected = collect(path, destination, _note, lambda size: Progress(size, sys.stderr))
        except OSError as error:
            if is_remote(destination) or error.filename is None:
                raise
            if not local_path(error.filename).is_relative_to(local_path(destination)):
                raise
            raise UsageError(f"can't write {error.filename!r}: {error.strerror}") from None
        write(sys.stdout, f"{collected}\n")

    return _exit_code(COLLECT, act)


def _note(text: str) -> None:
    write(sys.stderr, f"note: {text}\n")


def _exit_code(command: Command, act: Callable[[], None]) -> int:
    """Run a command; return its exit code.

    Raises:
        CommandLineError: the log or the output cannot be opened, or a package is missing.
    """
    from kproto.errors import CorruptLog, MissingPackage, NoLog, UsageError
    from kproto.logs.remote import StoreError

    try:
        act()
    except CorruptLog as error:
        write(sys.stderr, f"kproto {command.name}: {error}\n")
        return DAMAGED
    except (NoLog, MissingPackage, StoreError, UsageError) as error:
        raise command.error(str(error)) from None
    except BrokenPipeError:
        discard(sys.stdout)
        return PIPE_CLOSED
    except OSError as error:
        if error.filename is None:
            discard(sys.stdout)
            raise command.error(f"can't write: {error.strerror}") from None
        raise command.error(f"can't read {error.filename!r}: {error.strerror}") from None
    return 0


def _parse(command: Command, arguments: Sequence[str]) -> tuple[Given, str]:
    """Parse options before and after the one directory."""
    given, rest = command.parse_files(arguments)
    if not rest:
        raise command.error(f"no log given: write kproto {command.name} DIR")
    if rest[1:]:
        raise command.error(f"unexpected argument {rest[1]!r}: give one directory")
    return given, rest[0]


def _number(command: Command, given: Given, name: str, least: int) -> int | None:
    text = last(given, name)
    return None if text is None else whole_number(command, name, text, least, PARTITION_MAX)
