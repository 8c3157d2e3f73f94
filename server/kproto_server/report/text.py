"""The report for a terminal: the verdicts first, with every row that breaks; report files have everything."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.report import phrases
from kproto_server.report.model import api_name
from kproto_server.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    """One line before it is wrapped at the terminal's width, and the code of its color."""

    text: str
    style: str = PLAIN


def render(report: Report, *, width: int = WIDTH_MAX, color: bool = False, saved_as: Sequence[str] = ()) -> str:
    """Return the report's lines. Nothing is cut: a line that is too long goes on in the next one.

    Args:
        width: the columns of the terminal; lines have between 40 and 100. Only file names may be longer.
    """
    width = min(max(width, WIDTH_MIN), WIDTH_MAX)
    names = phrases.short_names({phrases.who(client) for client in report.clients})
    lines = [
        *_headline(report),
        *_breaks(report, names),
        *_closed(report, names),
        *_failed_authentications(report, names),
        *_logins(report, names),
        *_clients(report, names, width),
        *_other_verdicts(report),
        *_commits(report),
        *_errors(report),
        *_sources(report),
    ]
    shown = [_painted(part, style if color else PLAIN) for text, style in lines for part in _wrapped(text, width)]
    return "".join(f"{line}\n" for line in (*shown, *(f"whole report: {path}" for path in saved_as)))


def _wrapped(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent="      ", break_on_hyphens=False)


def _painted(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style else text


def _headline(report: Report) -> Iterator[Line]:
    """Yield the verdicts: of the target, and of broken connections."""
    sentence, broken = phrases.headline(report), phrases.protocol_errors(report)
    style = RED if report.would_break else BOLD if not report.requesting else _style_without_breaks(report)
    sentence = sentence if sentence[0].isdigit() else sentence[0].lower() + sentence[1:]
    yield Line(f"kproto: {sentence}", style)
    if broken:
        yield Line(f"kproto: {broken}", RED)
    if not report.clients:
        yield Line("  the command finds the broker's address in KAFKA_BOOTSTRAP_SERVERS")


def _style_without_breaks(report: Report) -> str:
    is_undecided = any(report.with_verdict(Verdict.UNDECIDED))
    return YELLOW if is_undecided else PLAIN if report.protocol_errors else GREEN


def _breaks(report: Report, names: Mapping[str, str]) -> Iterator[Line]:
    """Yield every request that would break, and for each such client the library and its advice."""
    target = report.target.name
    rows = [
        (sent.name, phrases.times(sent.count), phrases.why(sent, client, target), names[phrases.who(client)])
        for client, sent in report.with_verdict(Verdict.BREAKS)
    ]
    if rows:
        yield from _table(rows, limit=len(rows))
    for client in report.breaking:
        about = "; ".join(part for part in (phrases.library(client, report.target), phrases.origin(client)) if part)
        if about:
            yield Line(f"  {names[phrases.who(client)]}: {about}")
    if note := phrases.patch_releases(report):
        yield Line(f"  {note}")


def _clients(report: Report, names: Mapping[str, str], width: int) -> Iterator[Line]:
    clients = report.requesting
    if not clients:
        return
    count, requests = phrases.plural(len(clients), "client"), phrases.plural(report.request_count, "request")
    to_whom = "" if report.kafka_version.is_latest else f" to a broker of Kafka {report.kafka_version.name}"
    yield Line(f"{count} sent {requests}{to_whom}:", BOLD)
    lines_max = API_LINES_MAX if len(clients) <= FEW_CLIENTS else 1
    for client in clients[:ROWS_MAX]:
        yield Line(f"  {names[phrases.who(client)]}: {phrases.plural(client.request_count, 'request')}")
        yield from (Line(f"    {line}") for line in _names_in(lines_max, _names_by_api(client), width - 4))
    yield from _rest(clients, "client", ROWS_MAX)


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


def _other_verdicts(report: Report) -> Iterator[Line]:
    undecided = list(report.with_verdict(Verdict.UNDECIDED))
    newer = list(report.with_verdict(Verdict.NEWER))
    if newer:
        target = report.target.name
        yield Line(f"newer than {target}, clients that negotiate step down where they can: {_names(newer)}")
    if undecided:
        yield Line(f"not decided, since Kafka version {report.kafka_version.name} was the limit: {_names(undecided)}")
        yield Line(f"  {_way_to_decide(report)}")


def _way_to_decide(report: Report) -> str:
    if not any(phrases.sources(report)):
        return "run again with --kafka-version latest"
    return "what clients sent to it shows no other versions: run the client with kproto run"


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


def _sources(report: Report) -> Iterator[Line]:
    for source in phrases.sources(report):
        first, *more = source.text.split("; ")
        yield Line(f"read {phrases.plural(len(source.files), 'file')}: {first}")
        yield from (Line(f"  {clause}") for clause in ["; ".join(more)] if clause)


def _closed(report: Report, names: Mapping[str, str]) -> Iterator[Line]:
    """Yield every reason for which the broker closed connections."""
    rows = [
        (
            phrases.request_name(row.api_key, row.api_version),
            phrases.times(row.count),
            phrases.plain(row.reason),
            names[phrases.who(client)],
        )
        for client in report.clients
        for row in client.closed
    ]
    if rows:
        yield Line("connections that the broker closed:", YELLOW)
        yield from _table(rows, limit=len(rows))


def _failed_authentications(report: Report, names: Mapping[str, str]) -> Iterator[Line]:
    rows = [
        (mechanism, phrases.times(count), user, names[phrases.who(client)])
        for client, mechanism, user, count in phrases.failed_authentications(report)
    ]
    if rows:
        yield Line("failed authentications:", YELLOW)
        yield from _table(rows)


def _logins(report: Report, names: Mapping[str, str]) -> Iterator[Line]:
    rows = [
        (one.mechanism, phrases.times(one.connection_count), one.user, one.tls, names[phrases.who(one.client)])
        for one in phrases.logins(report)
    ]
    if rows:
        yield Line("logins:")
        yield from _table(rows)
    refused = [
        (reason, phrases.times(count), names[phrases.who(client)]) for client, reason, count in phrases.refusals(report)
    ]
    if refused:
        yield Line("newer software would refuse:", YELLOW)
        yield from _table(refused)


def _names(rows: Sequence[tuple[Client, Sent]]) -> str:
    return ", ".join(dict.fromkeys(sent.name for _, sent in rows))


def _table(rows: Sequence[tuple[str, ...]], limit: int = ROWS_MAX) -> Iterator[Line]:
    """Yield rows in aligned columns; the second column holds counts, aligned right."""
    shown = rows[:limit]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = [cell.ljust(size) for cell, size in zip(row, widths, strict=True)]
        cells[1] = row[1].rjust(widths[1])
        yield Line(f"  {'  '.join(cells)}".rstrip())
    yield from _rest(rows, "row", limit)


def _rest(rows: Sequence[object], noun: str, limit: int) -> Iterator[Line]:
    if len(rows) > limit:
        yield Line(f"  and {phrases.plural(len(rows) - limit, f'more {noun}')} (--report FILE has all)")
