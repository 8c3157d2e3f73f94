"""The report for a terminal: the most important lines first, about twenty at most; report files have everything."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.report import phrases
from kproto_server.report.model import api_name
from kproto_server.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto_server.report.model import Client, Report, Sent

WIDTH_MAX = 100
WIDTH_MIN = 40
ROWS_MAX = 6
"""Rows shown in a section; the section counts the rest."""
API_LINES_MAX = 2
FEW_CLIENTS = 3
"""Up to this many clients have API_LINES_MAX lines each; with more clients, each has one line."""

RED, GREEN, YELLOW, BOLD, PLAIN = "31", "32", "33", "1", ""


class Line(NamedTuple):
    """One line before it is shortened to the terminal's width, and the code of its color."""

    text: str
    style: str = PLAIN


def render(report: Report, *, width: int = WIDTH_MAX, color: bool = False, saved_as: Sequence[str] = ()) -> str:
    """Return the report's lines.

    Args:
        width: the columns of the terminal; lines have between 40 and 100. Only file names may be longer.
    """
    width = min(max(width, WIDTH_MIN), WIDTH_MAX)
    lines = [
        *_headline(report),
        *_clients(report, width),
        *_verdict(report),
        *_commits(report),
        *_errors(report),
        *_closed(report),
    ]
    shown = [_painted(_shortened(text, width), style if color else PLAIN) for text, style in lines]
    return "".join(f"{line}\n" for line in (*shown, *(f"whole report: {path}" for path in saved_as)))


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _painted(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style else text


def _headline(report: Report) -> Iterator[Line]:
    clients, requests = phrases.plural(len(report.clients), "client"), phrases.plural(report.request_count, "request")
    to_whom = "" if report.kafka_version.is_latest else f" to a broker of Kafka {report.kafka_version.name}"
    yield Line(f"kproto: {clients} sent {requests}{to_whom}" if report.clients else "kproto: no client connected", BOLD)
    if not report.clients:
        yield Line("  the command finds the broker's address in KAFKA_BOOTSTRAP_SERVERS")


def _clients(report: Report, width: int) -> Iterator[Line]:
    lines_max = API_LINES_MAX if len(report.clients) <= FEW_CLIENTS else 1
    for client in report.clients[:ROWS_MAX]:
        yield Line(f"  {phrases.who(client)}: {phrases.plural(client.request_count, 'request')}")
        yield from (Line(f"    {line}") for line in _names_in(lines_max, _names_by_api(client), width - 4))
    yield from _rest(report.clients, "client")


def _names_by_api(client: Client) -> list[str]:
    """Return ``OffsetCommit v3 v4``: each API once, with its versions."""
    versions: dict[int, list[str]] = {}
    for sent in client.sent:
        versions.setdefault(sent.api_key, []).append(f"v{sent.api_version}")
    return [" ".join((api_name(api_key), *found)) for api_key, found in versions.items()]


def _names_in(lines_max: int, names: Sequence[str], width: int) -> list[str]:
    """Return as many names as fit in ``lines_max`` lines, and the number of the others; names are not broken."""
    for kept in range(len(names), 0, -1):
        rest = [f"and {len(names) - kept} more"] if kept < len(names) else []
        text = ", ".join([*names[:kept], *rest]).replace(", ", ",\n").replace(" ", "\0").replace("\n", " ")
        lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
        if len(lines) <= lines_max:
            return [line.replace("\0", " ") for line in lines]
    return []


def _verdict(report: Report) -> Iterator[Line]:
    target = report.target.name
    breaks = list(report.with_verdict(Verdict.BREAKS))
    undecided = list(report.with_verdict(Verdict.UNDECIDED))
    newer = list(report.with_verdict(Verdict.NEWER))
    if breaks:
        yield Line(f"would break on Kafka {target}:", RED)
        rows = [(s.name, phrases.times(s.count), phrases.why(s, c, target), phrases.who(c)) for c, s in breaks]
        yield from _table(rows)
    elif undecided:
        yield Line(f"no request seen that would break on Kafka {target}, but some are undecided", YELLOW)
    elif report.clients:
        yield Line(f"nothing would break on Kafka {target}", GREEN)
    if newer:
        yield Line(f"newer than {target}, clients that negotiate step down where they can: {_names(newer)}")
    if undecided:
        yield Line(f"not decided, since Kafka version {report.kafka_version.name} was the limit: {_names(undecided)}")
        yield Line("  run again with --kafka-version latest")


def _commits(report: Report) -> Iterator[Line]:
    for (api_version, name), (count, overriding) in report.commits().items():
        details = f"{phrases.layout(name)}, {phrases.times(count)}, {phrases.overrides(overriding, count)}"
        yield Line(f"OffsetCommit v{api_version} {details}")
    retention = report.retention
    if retention is not None:
        yield Line(f"  longest retention requested: {phrases.duration(retention.largest_override_ms)}")
        advice = f"  {phrases.advice(retention)} (here: {phrases.compared(retention)})"
        yield Line(advice, PLAIN if retention.is_covered else YELLOW)


def _errors(report: Report) -> Iterator[Line]:
    rows = phrases.errors(report)
    if rows:
        yield Line("errors returned:")
        yield from _table([(api, phrases.times(count), error) for api, error, count in rows])


def _closed(report: Report) -> Iterator[Line]:
    rows = [
        (
            phrases.request_name(row.api_key, row.api_version),
            phrases.times(row.count),
            phrases.plain(row.reason),
            phrases.who(client),
        )
        for client in report.clients
        for row in client.closed
    ]
    if rows:
        yield Line("connections that the broker closed:", YELLOW)
        yield from _table(rows)


def _names(rows: Sequence[tuple[Client, Sent]]) -> str:
    return ", ".join(dict.fromkeys(sent.name for _, sent in rows))


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[Line]:
    """Yield rows in aligned columns; the second column holds counts, aligned right."""
    shown = rows[:ROWS_MAX]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = [cell.ljust(size) for cell, size in zip(row, widths, strict=True)]
        cells[1] = row[1].rjust(widths[1])
        yield Line(f"  {'  '.join(cells)}".rstrip())
    yield from _rest(rows, "row")


def _rest(rows: Sequence[object], noun: str) -> Iterator[Line]:
    if len(rows) > ROWS_MAX:
        yield Line(f"  and {phrases.plural(len(rows) - ROWS_MAX, f'more {noun}')} (--report FILE has all)")
