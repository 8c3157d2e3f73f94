"""The report on a terminal: what matters first, about twenty lines at most; the files have it all."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from kproto_server.report import words
from kproto_server.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto_server.report.model import Client, Report, Sent

WIDTH_MAX = 100
WIDTH_MIN = 40
ROWS_MAX = 6
"""Rows of a section; the rest is counted."""
API_LINES_MAX = 2
FEW_CLIENTS = 3
"""So many get two lines of APIs each, more of them one."""

RED, GREEN, YELLOW, BOLD = "31", "32", "33", "1"


class Paint:
    """Colours a text if it is for a terminal that shows them."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text


def render(report: Report, *, width: int = WIDTH_MAX, colour: bool = False, saved_as: str | None = None) -> str:
    """Return the lines, each ended; no line is wider than ``width``, which is held between 40 and 100."""
    width = min(max(width, WIDTH_MIN), WIDTH_MAX)
    paint = Paint(colour)
    lines = [
        _headline(report, paint),
        *_clients(report, width),
        *_verdict(report, paint, width),
        *_commits(report, paint, width),
        *_errors(report, width),
        *_closed(report, paint, width),
    ]
    if saved_as is not None:
        lines.append(f"whole report: {saved_as}")
    return "".join(f"{line}\n" for line in lines)


def _headline(report: Report, paint: Paint) -> str:
    if not report.clients:
        return paint(BOLD, "kproto: no client connected") + " (the command is told where by KAFKA_BOOTSTRAP_SERVERS)"
    clients, requests = words.plural(len(report.clients), "client"), words.plural(report.request_count, "request")
    to_whom = "" if report.profile.is_latest else f" to a broker of Kafka {report.profile.name}"
    return paint(BOLD, f"kproto: {clients} sent {requests}{to_whom}")


def _clients(report: Report, width: int) -> Iterator[str]:
    for client in report.clients[:ROWS_MAX]:
        yield _cut(f"  {words.who(client)}: {words.plural(client.request_count, 'request')}", width)
        lines_max = API_LINES_MAX if len(report.clients) <= FEW_CLIENTS else 1
        for line in _names_in(lines_max, [sent.name for sent in client.sent], width - 4):
            yield f"    {line}"
    yield from _rest(report.clients, "client")


def _names_in(lines_max: int, names: Sequence[str], width: int) -> list[str]:
    """As many names as fill ``lines_max`` lines, and how many there are beyond; a name is not broken."""
    for kept in range(len(names), 0, -1):
        rest = [f"and {len(names) - kept} more"] if kept < len(names) else []
        text = ", ".join([*names[:kept], *rest]).replace(", ", ",\n").replace(" ", "\0").replace("\n", " ")
        lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
        if len(lines) <= lines_max:
            return [line.replace("\0", " ") for line in lines]
    return []


def _verdict(report: Report, paint: Paint, width: int) -> Iterator[str]:
    target = report.target.name
    breaks = list(report.with_verdict(Verdict.BREAKS))
    undecided = list(report.with_verdict(Verdict.UNDECIDED))
    newer = list(report.with_verdict(Verdict.NEWER))
    if breaks:
        yield paint(RED, f"would break on Kafka {target}:")
        yield from _table(
            [(s.name, words.times(s.count), words.why(s, c, target), words.who(c)) for c, s in breaks], width
        )
    elif undecided:
        yield paint(YELLOW, f"nothing seen that would break on Kafka {target}, but not all is decided")
    elif report.clients:
        yield paint(GREEN, f"nothing would break on Kafka {target}")
    if newer:
        yield _cut(f"newer than {target}, clients that negotiate step down where they can: {_names(newer)}", width)
    if undecided:
        yield _cut(f"not decided, since profile {report.profile.name} was the limit: {_names(undecided)}", width)
        yield "  to decide, run with --profile latest"


def _commits(report: Report, paint: Paint, width: int) -> Iterator[str]:
    for (api_version, name), (count, overriding) in report.commits().items():
        told = f"{words.layout(api_version, name)}, {words.times(count)}, {words.overrides(overriding, count)}"
        yield _cut(f"OffsetCommit v{api_version} {told}", width)
    retention = report.retention
    if retention is not None:
        yield f"  longest retention asked for: {words.duration(retention.largest_override_ms)}"
        advice = f"  {words.advice(retention)} (here: {words.compared(retention)})"
        yield advice if retention.is_covered else paint(YELLOW, advice)


def _errors(report: Report, width: int) -> Iterator[str]:
    rows = words.errors(report)
    if rows:
        yield "errors answered:"
        yield from _table([(api, words.times(count), error) for api, error, count in rows], width)


def _closed(report: Report, paint: Paint, width: int) -> Iterator[str]:
    rows = [(client, row) for client in report.clients for row in client.closed]
    if rows:
        yield paint(YELLOW, "connections that the broker closed:")
        cells = [
            (
                words.request_name(row.api_key, row.api_version),
                words.times(row.count),
                words.plain(row.reason),
                words.who(client),
            )
            for client, row in rows
        ]
        yield from _table(cells, width)


def _names(rows: Sequence[tuple[Client, Sent]]) -> str:
    return ", ".join(dict.fromkeys(sent.name for _, sent in rows))


def _table(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Rows in columns; the second one holds counts and stands to the right."""
    shown = rows[:ROWS_MAX]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]))]
    for row in shown:
        cells = [
            cell.rjust(size) if column == 1 else cell.ljust(size)
            for column, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        yield _cut("  " + "  ".join(cells).rstrip(), width)
    yield from _rest(rows, "row")


def _rest(rows: Sequence[object], noun: str) -> Iterator[str]:
    if len(rows) > ROWS_MAX:
        yield f"  and {words.plural(len(rows) - ROWS_MAX, f'more {noun}')} (--report FILE has all)"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3] + "..."
