"""`kproto log dump`, `verify` and `export`: their command lines, and how they end.

Exit codes: 0; 1 for a log that is not as it must be; 2 for a mistake on the command line, or what this installation
can't do. Each with one line on standard error.
"""

from __future__ import annotations

import os
import sys

from kproto.errors import CommandLineError
from kproto_server.commandline.arguments import Command, HelpRequested, Option, whole_number
from kproto_server.commandline.output import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto_server.inspect.directory import PartitionLog

    Given = dict[str, list[str]]

DAMAGED = 1
PIPE_CLOSED = 141
"""As a shell has it for a program that SIGPIPE ended: whoever read the output had enough."""
PARTITION_MAX = 2**31 - 1

DUMP = Command(
    "log dump",
    "Print every batch and record of a log of __consumer_offsets or __transaction_state, kproto's or Kafka's.\n"
    "DIR is the directory of a partition, a log.dir that holds such directories, or a segment file.",
    "DIR",
    (
        Option("--format", "FORMAT", "text, or jsonl: a line of JSON for each batch and record (default text)"),
        Option("--partition", "N", "this partition only"),
    ),
)
VERIFY = Command(
    "log verify",
    "Check every invariant of a log of __consumer_offsets or __transaction_state, kproto's or Kafka's.\n"
    "Exits with 1 and the place of the first that does not hold. DIR is as for kproto log dump.",
    "DIR",
    (Option("--partitions", "N", "how many __consumer_offsets has (default: found out, where the log.dir tells)"),),
)
EXPORT = Command(
    "log export",
    "Write the rows of a log of __consumer_offsets, kproto's or Kafka's, to a file for DuckDB, polars or pandas.\n"
    "Needs numpy and pyarrow. kproto.spark.schemas tells the columns. DIR is as for kproto log dump.",
    "DIR",
    (
        Option("--output", "FILE", "the file to write, with everything or not at all: NAME.parquet or NAME.arrow"),
        Option(
            "--table",
            "TABLE",
            "commits, group_metadata, log_batches (of all topics),\n"
            "or latest: the offsets at the end of the log (default commits)",
        ),
        Option("--partition", "N", "this partition only"),
    ),
)
COMMANDS = {"dump": DUMP, "verify": VERIFY, "export": EXPORT}

HELP = """usage: kproto log COMMAND [options] DIR

Look into the log of the offsets topic, as kproto and Kafka write it.

commands:
  dump    print every batch and record
  verify  check every invariant
  export  write its rows as Parquet or Arrow

kproto log COMMAND --help tells the options.
"""


def log(words: Sequence[str]) -> int:
    """Do what stands after ``kproto log``; return the exit code.

    Raises:
        CommandLineError: with one line for the user.
        HelpAsked: with the help.
    """
    match list(words):
        case ["-h" | "--help" | "help"]:
            raise HelpRequested(HELP)
        case ["help", name] if name in COMMANDS:
            raise HelpRequested(COMMANDS[name].help())
        case ["dump", *rest]:
            return _dump(rest)
        case ["verify", *rest]:
            return _verify(rest)
        case ["export", *rest]:
            return _export(rest)
        case []:
            raise CommandLineError("kproto log: no command given: use dump, verify or export, see kproto log --help")
    raise CommandLineError(f"kproto log: no command {words[0]!r}: use dump, verify or export, see kproto log --help")


def _dump(words: Sequence[str]) -> int:
    given, name = _parse(DUMP, words)
    form = _last(given, "--format") or "text"
    partition = _number(DUMP, given, "--partition", 0)

    from kproto_server.inspect.directory import find_logs
    from kproto_server.inspect.dump import FORMATS, dump

    if form not in FORMATS:
        raise DUMP.error(f"--format can't be {form!r}: use {' or '.join(FORMATS)}")
    if sys.stdout is None:  # closed before Python started
        raise DUMP.error("can't write: standard output is closed")

    def act() -> None:
        try:
            dump(find_logs(name, partition), form, write=sys.stdout.write, note=_note)
        finally:  # before the line that tells why it ended
            sys.stdout.flush()

    return _ending(DUMP, act)


def _verify(words: Sequence[str]) -> int:
    given, name = _parse(VERIFY, words)
    partitions = _number(VERIFY, given, "--partitions", 1)

    from kproto_server.inspect.directory import find_logs

    return _ending(VERIFY, lambda: _verify_logs(find_logs(name), partitions))


def _verify_logs(logs: list[PartitionLog], partitions: int | None) -> None:
    from kproto_server.inspect.progress import Progress
    from kproto_server.inspect.verify import verify

    progress = Progress(sum(found.size for found in logs), sys.stderr)

    def note(text: str) -> None:
        progress.clear()
        _note(text)

    try:
        verified = verify(logs, partitions=partitions, note=note, read=progress.add)
    finally:
        progress.clear()
    write(sys.stdout, f"{verified}\n")


def _export(words: Sequence[str]) -> int:
    given, name = _parse(EXPORT, words)
    table = _last(given, "--table") or "commits"
    partition = _number(EXPORT, given, "--partition", 0)
    output = _last(given, "--output")
    try:
        from kproto_server.inspect import export
    except ModuleNotFoundError as error:
        if error.name not in ("numpy", "pyarrow"):
            raise
        raise EXPORT.error("needs numpy and pyarrow: pip install numpy pyarrow") from None
    if output is None:
        raise EXPORT.error("no file to write to given: write --output FILE")
    if table not in export.TABLES:
        raise EXPORT.error(f"--table can't be {table!r}: use {' or '.join(export.TABLES)}")
    if not output.endswith(export.ENDINGS):
        raise EXPORT.error(f"--output can't be {output!r}: end it in {' or '.join(export.ENDINGS)}")

    def act() -> None:
        write(sys.stdout, f"{export.export(name, table, partition, output, _note)}\n")

    return _ending(EXPORT, act)


def _note(text: str) -> None:
    write(sys.stderr, f"note: {text}\n")


def _ending(command: Command, act: Callable[[], None]) -> int:
    """Do it; return the exit code that tells how it went."""
    from kproto.errors import CorruptLog, MissingPackage, NoLog

    try:
        act()
    except CorruptLog as error:
        write(sys.stderr, f"kproto {command.name}: {error}\n")
        return DAMAGED
    except (NoLog, MissingPackage) as error:
        raise command.error(str(error)) from None
    except BrokenPipeError:
        _give_up_output()
        return PIPE_CLOSED
    except OSError as error:
        if error.filename is None:
            _give_up_output()
            raise command.error(f"can't write: {error.strerror}") from None
        raise command.error(f"can't read {error.filename!r}: {error.strerror}") from None
    return 0


def _give_up_output() -> None:
    """Let what could not be written go, else Python tries it once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _parse(command: Command, words: Sequence[str]) -> tuple[Given, str]:
    """Read options before and after the one directory."""
    given, rest = command.parse(words)
    if not rest:
        raise command.error(f"no log given: write kproto {command.name} DIR")
    more, rest_behind = command.parse(rest[1:])
    if rest_behind:
        raise command.error(f"unexpected argument {rest_behind[0]!r}: give one directory")
    return {**given, **more}, rest[0]


def _last(given: Given, name: str) -> str | None:
    values = given.get(name)
    return values[-1] if values else None


def _number(command: Command, given: Given, name: str, least: int) -> int | None:
    text = _last(given, name)
    return None if text is None else whole_number(command, name, text, least, PARTITION_MAX)
