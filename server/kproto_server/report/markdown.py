"""The report as Markdown, for a pull request or a wiki."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kproto_server.report import phrases
from kproto_server.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto_server.observation.observed import ClosedSeen, ErrorsSeen
    from kproto_server.report.model import Client, Report

WORDS = {
    Verdict.SERVED: "served",
    Verdict.BREAKS: "**would break**",
    Verdict.NEWER: "newer than the target",
    Verdict.UNDECIDED: "not decided",
}


def render(report: Report) -> str:
    sections = [
        _head(report),
        _breaks(report),
        _closed(report),
        _failed_authentications(report),
        _logins(report),
        _requests(report),
        _commits(report),
        _errors(report),
    ]
    return "\n".join(line for section in sections for line in section) + f"\n{phrases.MEANING}\n"


def _head(report: Report) -> Iterator[str]:
    yield f"# {phrases.headline(report)}"
    yield ""
    if report.protocol_errors:
        yield f"**{phrases.protocol_errors(report)}.**"
        yield ""
    if report.run is not None:
        yield f"- command: {_code(phrases.command(report.run))}"
        yield f"- {phrases.ended(report.run)}"
    for source in phrases.sources(report):
        yield f"- {source.name}: {', '.join(_code(phrases.plain(name)) for name in source.files)}"
        yield f"- {source.text}"
    yield f"- broker: {phrases.broker(report)}"
    clients, requests = phrases.plural(len(report.clients), "client"), phrases.plural(report.request_count, "request")
    yield f"- {clients}, {requests}"
    yield ""


def _breaks(report: Report) -> Iterator[str]:
    target = report.target.name
    rows = [
        (
            phrases.who(client),
            sent.name,
            f"{sent.count:,}",
            phrases.why(sent, client, target),
            phrases.library(client, report.target) or "unknown",
        )
        for client, sent in report.with_verdict(Verdict.BREAKS)
    ]
    yield f"## Would break on Kafka {target}"
    yield ""
    heads = ("Client", "Request", "Count", "Why", "Library")
    yield from _table(heads, rows, right=2) if rows else ("No request seen.", "")
    if note := phrases.patch_releases(report):
        yield f"{note}."
        yield ""


def _requests(report: Report) -> Iterator[str]:
    yield "## Requests"
    yield ""
    rows = [
        (phrases.who(client), sent.name, f"{sent.count:,}", f"{WORDS[sent.verdict]}{'; ' * bool(sent.why)}{sent.why}")
        for client in report.clients
        for sent in client.sent
    ]
    yield from _table(("Client", "Request", "Count", f"Kafka {report.target.name}"), rows, right=2)
    origins = [(phrases.who(client), origin) for client in report.clients if (origin := phrases.origin(client))]
    if origins:
        yield "## Where clients come from"
        yield ""
        yield from _table(("Client", "Hosts and principals"), origins)


def _commits(report: Report) -> Iterator[str]:
    rows = [
        (f"v{version}", phrases.layout(name), f"{count:,}", phrases.overrides(overriding, count))
        for (version, name), (count, overriding) in report.commits().items()
    ]
    if not rows:
        return
    yield "## OffsetCommit with a retention_time"
    yield ""
    yield from _table(("Version", "Layout", "Count", "Overrides"), rows, right=2)
    if report.retention is not None:
        retention = report.retention
        yield f"Longest retention requested: {phrases.duration(retention.largest_override_ms)}."
        yield f"KIP-211: {phrases.advice(retention)} (here: {phrases.compared(retention)})."
        yield ""


def _errors(report: Report) -> Iterator[str]:
    rows = [(client, row, phrases.error(row.error_code)) for client in report.clients for row in client.errors]
    yield from _by_request("Errors returned", "Error", rows)


def _closed(report: Report) -> Iterator[str]:
    rows = [(client, row, phrases.plain(row.reason)) for client in report.clients for row in client.closed]
    yield from _by_request("Connections that the broker closed", "Reason", rows)


def _failed_authentications(report: Report) -> Iterator[str]:
    rows = [
        (phrases.who(client), mechanism, f"{count:,}", user)
        for client, mechanism, user, count in phrases.failed_authentications(report)
    ]
    if rows:
        yield "## Failed authentications"
        yield ""
        yield from _table(("Client", "Mechanism", "Count", "User"), rows, right=2)


def _logins(report: Report) -> Iterator[str]:
    rows = [
        (phrases.who(one.client), one.mechanism, f"{one.connection_count:,}", one.user, one.tls)
        for one in phrases.logins(report)
    ]
    if rows:
        yield "## Logins"
        yield ""
        yield from _table(("Client", "Mechanism", "Count", "User", "TLS"), rows, right=2)
    refused = [(phrases.who(client), reason, f"{count:,}") for client, reason, count in phrases.refusals(report)]
    if refused:
        yield "## What newer software would refuse"
        yield ""
        yield from _table(("Client", "Refused", "Count"), refused, right=2)


def _by_request(title: str, last: str, rows: Sequence[tuple[Client, ErrorsSeen | ClosedSeen, str]]) -> Iterator[str]:
    """Yield a section with a row for each client and request; nothing if there is no row."""
    if rows:
        yield f"## {title}"
        yield ""
        cells = [
            (phrases.who(client), phrases.request_name(row.api_key, row.api_version), f"{row.count:,}", text)
            for client, row, text in rows
        ]
        yield from _table(("Client", "Request", "Count", last), cells, right=2)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: int | None = None) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"| {' | '.join('--:' if column == right else '---' for column in range(len(heads)))} |"
    for row in rows:
        yield f"| {' | '.join(_escaped(cell) for cell in row)} |"
    yield ""


def _escaped(cell: str) -> str:
    """Return a cell without markup and line breaks: client ids and reasons are untrusted text."""
    plain = " ".join(cell.replace("\\", "\\\\").split())
    for character in "|`<>[]_*~&":
        plain = plain.replace(character, f"\\{character}")
    return plain


def _code(text: str) -> str:
    """Return inline code; its fence is longer than any run of backticks in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return f"`{text}`" if longest == 0 else f"{'`' * (longest + 1)} {text} {'`' * (longest + 1)}"
