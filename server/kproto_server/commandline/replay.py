"""`kproto replay` and `kproto diff`: captured traffic against another broker.

Exit codes: 0; 1 if responses differ; 2 for a file that cannot be read or written, or a broker that cannot be reached,
with one line on standard error.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from kproto import output_file
from kproto_server.capture.packet_files import BadCapture
from kproto_server.capture.writer import CaptureFile
from kproto_server.commandline.arguments import last, whole_number
from kproto_server.commandline.commands import DIFF, REPLAY
from kproto_server.commandline.output import write
from kproto_server.commandline.parsing import address
from kproto_server.commandline.source_files import opened
from kproto_server.network.descriptors import raise_limit
from kproto_server.replay.comparing import Comparison, Responses
from kproto_server.replay.conversations import read
from kproto_server.replay.replaying import CannotReplay, Replay
from kproto_server.report.phrases import plain, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from kproto_server.commandline.arguments import Command
    from kproto_server.commandline.broker_settings import Given
    from kproto_server.replay.differing import Differing

    T = TypeVar("T")

DIFFERENT = 1
SHOWN = 10
"""Responses that are shown; ``--report`` has all."""
ROWS_SHOWN = 8
VALUE_LENGTH_MAX = 200
TIMEOUT_S, TIMEOUT_MAX_S = 30, 3600


def replay(words: Sequence[str]) -> int:
    """Run ``kproto replay`` with these arguments; return the exit code.

    Raises:
        CommandLineError: an argument is wrong, the capture cannot be read, or the broker cannot be reached.
    """
    given, rest = REPLAY.parse_files(words)
    if len(rest) != 2:
        raise REPLAY.error("give a capture and a broker: FILE HOST:PORT")
    path, broker = rest
    target = address(REPLAY, "the broker", broker, "HOST:PORT")
    timeout_s = whole_number(REPLAY, "--timeout", last(given, "--timeout") or str(TIMEOUT_S), 1, TIMEOUT_MAX_S)
    report = _report_file(REPLAY, given)
    raise_limit()
    with _capture(given) as capture:
        found = Replay(target, timeout_s=timeout_s, capture=capture)
        try:
            with closing(found):
                connections = read_capture(REPLAY, path, lambda stream: read(stream, found))
        except CannotReplay as error:
            raise REPLAY.error(str(error)) from None
        if not connections.connection_count:
            raise REPLAY.error(f"no connection of Kafka in {path!r}")
    summary = (
        f"{plural(found.request_count, 'request')} of {plural(found.connection_count, 'connection')} sent to {broker}: "
        f"{len(found.differing):,} of {found.response_count:,} responses differ"
    )
    left_out = []
    if found.transient_count:
        left_out.append(f"{plural(found.transient_count, 'captured response')} with a retriable error not compared")
    if found.skipped_count:
        left_out.append(f"{plural(found.skipped_count, 'request')} behind the end of a connection not sent")
    return _publish(summary, left_out, found.differing, ("captured", "now"), report)


def diff(words: Sequence[str]) -> int:
    """Run ``kproto diff`` with these arguments; return the exit code.

    Raises:
        CommandLineError: an argument is wrong, or a capture cannot be read.
    """
    given, rest = DIFF.parse_files(words)
    if len(rest) != 2:
        raise DIFF.error("give two captures: A B")
    report = _report_file(DIFF, given)
    one, other = (read_capture(DIFF, path, Responses) for path in rest)
    for path, responses in zip(rest, (one, other), strict=True):
        if not responses.response_count:
            raise DIFF.error(f"no response of Kafka in {path!r}")
    found = Comparison(one, other)
    summary = f"{len(found.differing):,} of {found.compared_count:,} responses differ"
    left_out = []
    if found.transient_count:
        left_out.append(f"{plural(found.transient_count, 'pair')} of responses with a retriable error not compared")
    if found.unmatched_count:
        left_out.append(f"{plural(found.unmatched_count, 'response')} in one of the captures only")
    return _publish(summary, left_out, found.differing, ("A", "B"), report)


@contextmanager
def _capture(given: Given) -> Iterator[CaptureFile | None]:
    """Yield the file of ``--capture``, which gets its name after the block: it may be the file that is replayed."""
    path = last(given, "--capture")
    if path is None:
        yield None
        return
    try:
        with output_file.completed(path) as written:
            yield CaptureFile(written)
    except OSError as error:
        raise REPLAY.error(f"--capture: can't write {path!r}: {error.strerror}") from None


def _report_file(command: Command, given: Given) -> str | None:
    path = last(given, "--report")
    if path is None:
        return None
    if not path.endswith(".json"):
        raise command.error(f"--report can't be {path!r}: its name ends in .json")
    try:
        output_file.check_writable(path)
    except OSError as error:
        raise command.error(f"--report: can't write {path!r}: {error.strerror}") from None
    return path


def read_capture(command: Command, path: str, action: Callable[[Any], T]) -> T:
    """Return what an action makes of a file.

    Raises:
        CommandLineError: it cannot be read.
    """
    try:
        with opened(path, lambda size: None) as stream:
            return action(stream)
    except BadCapture as error:
        raise command.error(f"can't read {path!r}: {error}") from None
    except OSError as error:
        raise command.error(f"can't read {path!r}: {error.strerror or error}") from None


def _publish(
    summary: str, left_out: list[str], differing: list[Differing], names: tuple[str, str], report: str | None
) -> int:
    lines = [f"kproto: {summary}", *(f"  {text}" for text in left_out)]
    for each in differing[:SHOWN]:
        lines.append(f"connection {each.connection}, {plain(each.client_id)}, request {each.request}: {each.name}")
        for path, one, other in each.rows[:ROWS_SHOWN]:
            first, second = (plain(value)[:VALUE_LENGTH_MAX] for value in (one, other))
            lines.append(f"  {path or 'response'}: {names[0]} {first}, {names[1]} {second}")
        if len(each.rows) > ROWS_SHOWN:
            lines.append(f"  and {plural(len(each.rows) - ROWS_SHOWN, 'field')} more")
    if len(differing) > SHOWN:
        lines.append(f"and {plural(len(differing) - SHOWN, 'response')} more")
    write(sys.stdout, "".join(f"{line}\n" for line in lines))
    if report is not None:
        output_file.write(report, json.dumps(_as_objects(differing, names), indent=2, ensure_ascii=False) + "\n")
    return DIFFERENT if differing else 0


def _as_objects(differing: list[Differing], names: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "connection": each.connection,
            "client_id": each.client_id,
            "request": each.request,
            "api": each.name,
            "fields": [{"path": path, names[0]: one, names[1]: other} for path, one, other in each.rows],
        }
        for each in differing
    ]
