"""Phrases that all formats of the report share."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.report.model import api_name, error_name, is_retriable
from kproto_server.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.report.model import Client, Report, Retention, Run, Sent
    from kproto_server.report.sources_read import CapturesRead, MetricsRead, ReportsRead, RequestLogsRead

UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))

LAYOUTS = {"v4 as released": "as released, with retention_time", "v4 of KIP-211": "of KIP-211, without retention_time"}

MEANING = (
    "A client that negotiates (it sends ApiVersions) chooses the highest version that it shares with the broker. "
    "With a broker that serves all versions this is the client's own highest version, so the client breaks only where "
    "that is below the target's lowest; where it is above the target's highest, the client steps down to an older "
    "version if it supports one, which is no break. "
    "A client that does not negotiate breaks where the target does not serve the version that it sends."
)


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def times(count: int) -> str:
    return f"{count:,}x"


def duration(total_ms: int) -> str:
    """Return a duration in at most two units, ``7 d`` or ``1 h 30 min``, if that is exact; else in milliseconds."""
    parts, rest = [], abs(total_ms)
    for unit, size in UNITS_MS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count:,} {unit}")
    if not parts or total_ms < 0 or len(parts) > 2:
        return f"{total_ms:,} ms"
    return " ".join(parts)


def versions(span: tuple[int, int] | None) -> str:
    """Return ``v4-v17``, ``v0`` or ``no version``."""
    if span is None:
        return "no version"
    low, high = span
    return f"v{low}" if low == high else f"v{low}-v{high}"


def plain(text: str) -> str:
    """Return untrusted text without control characters: a client id must not control a terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def who(client: Client) -> str:
    """Return a client's id, and its software if known."""
    name = plain(client.client_id) or "(no client id)"
    return f"{name} ({plain(client.software)})" if client.software else name


LOOPBACK = ("127.", "::1", "0:0:0:0:0:0:0:1")
ANONYMOUS = "User:ANONYMOUS"
ORIGINS_SHOWN = 5


def origin(client: Client) -> str:
    """Return hosts and principals of a client; empty: this machine alone, without authentication."""
    hosts = [host for host in client.hosts if not host.startswith(LOOPBACK)]
    principals = [name for name in client.principals if name != ANONYMOUS]
    parts = (_some("from", hosts), _some("as", principals))
    return " ".join(part for part in parts if part)


def _some(word: str, names: list[str]) -> str:
    rest = [f"{len(names) - ORIGINS_SHOWN:,} more"] if len(names) > ORIGINS_SHOWN else []
    return f"{word} {', '.join([*map(plain, names[:ORIGINS_SHOWN]), *rest])}" if names else ""


LONG_NAME = 60
"""A longer client id is abbreviated on a terminal, unless that makes it equal to another one."""


def short_names(names: Collection[str]) -> dict[str, str]:
    """Return each name as a terminal shows it: a long one loses its middle, but never where two names differ."""
    short = {name: name if len(name) <= LONG_NAME else f"{name[:28]}...{name[-28:]}" for name in names}
    counts = Counter(short.values())
    return {name: shown if counts[shown] == 1 else name for name, shown in short.items()}


def headline(report: Report) -> str:
    """Return how many clients would break, one sentence."""
    target = report.target.name
    if not report.requesting:
        return "No client sent a request" if report.clients else "No client connected"
    if report.would_break:
        return f"{len(report.breaking):,} of {plural(len(report.requesting), 'client')} would break on Kafka {target}"
    if any(report.with_verdict(Verdict.UNDECIDED)):
        return f"No request seen that would break on Kafka {target}; some are undecided"
    return f"Nothing would break on Kafka {target}"


def protocol_errors(report: Report) -> str:
    """Return how many connections broke, one sentence; empty if none did."""
    count = report.protocol_errors
    return f"{plural(count, 'connection')} broke: protocol errors" if count else ""


def library(client: Client, target: KafkaVersion) -> str:
    """Return the library of a client that would break and the release to use; empty if the library is unknown."""
    if client.library is None:
        return ""
    # The advice is that of KIP-896, whose versions Kafka 4.0 removed.
    return f"{client.library.name}: {client.library.advice}" if target.at_least(4, 0) else client.library.name


def patch_releases(report: Report) -> str:
    """Return how other patch releases of the target's line differ from it, one sentence; empty if they do not."""
    other = report.other_patch_releases
    if other is None:
        return ""
    is_one = other.name.count(".") > 1  # else the rest of the line
    releases, verbs = (
        (other.name, ("also serves", "does not serve"))
        if is_one
        else (f"{other.name}.1 and newer", ("also serve", "do not serve"))
    )
    versions = (other.served, other.not_served)
    differs = [f"{verb} {_version_names(found)}" for verb, found in zip(verbs, versions, strict=True) if found]
    return f"Kafka {releases} {' and '.join(differs)} (--target {other.name})"


def _version_names(versions: Iterable[tuple[int, int]]) -> str:
    found: dict[int, list[str]] = {}
    for api_key, api_version in versions:
        found.setdefault(api_key, []).append(f"v{api_version}")
    return ", ".join(f"{api_name(api_key)} {' and '.join(names)}" for api_key, names in found.items())


def command(run: Run) -> str:
    """Return the command line as a user would type it."""
    return plain(" ".join(shlex.join(run.command).split()))


def ended(run: Run) -> str:
    return f"exit code {run.exit_code} after {run.duration_seconds:.1f} s, started {run.started_at}"


def broker(report: Report) -> str:
    if report.kafka_version.is_latest:
        if report.sources.request_log is not None:
            return "Kafka 2.8 or newer, by the format of its request log"
        return "not known, or all releases at once" if any(sources(report)) else "all releases at once"
    return f"Kafka {report.kafka_version.name}"


class Source(NamedTuple):
    """What a report was read from, of one kind of files."""

    name: str
    files: tuple[str, ...]
    text: str
    """What was read, in clauses."""


NOT_IN_LOGS = "a request log has no connections that the broker closed"
"""What a report on request logs does not have."""
NOT_IN_METRICS = "metrics have no client ids, and count since the start of the broker"
"""What a report on metrics does not have."""


def sources(report: Report) -> Iterator[Source]:
    """Yield what a report was read from; nothing if kproto was the broker."""
    read = report.sources
    if read.request_log is not None:
        yield Source("request log", read.request_log.files, f"{_request_log(read.request_log)}; {NOT_IN_LOGS}")
    if read.capture is not None:
        yield Source("capture", read.capture.files, _capture(read.capture))
    if read.metrics is not None:
        yield Source("metrics", read.metrics.files, f"{_metrics(read.metrics)}; {NOT_IN_METRICS}")
    if read.reports is not None:
        yield Source("report", read.reports.files, _reports(read.reports))


def _request_log(read: RequestLogsRead) -> str:
    others = f"{plural(read.lines_without_request, 'line')} of {read.lines:,} without a request"
    unreadable = f"{plural(read.unreadable_requests, 'request')} not readable"
    return ", ".join((others, *([unreadable] if read.unreadable_requests else []), _of_brokers(read)))


def _capture(read: CapturesRead) -> str:
    clauses = [plural(read.packets, "packet"), plural(read.connections, "connection"), _of_brokers(read)]
    if read.tls_connections:
        clauses.append(f"{plural(read.tls_connections, 'connection')} with TLS not readable")
    if read.gaps:
        clauses.append(f"{plural(read.gaps, 'gap')} of lost packets, {plural(read.lost_bytes, 'byte')}")
    if read.unread_bytes:
        clauses.append(f"{plural(read.unread_bytes, 'byte')} of cut requests and responses not read")
    return ", ".join(clauses)


def _metrics(read: MetricsRead) -> str:
    samples = f"{plural(read.samples, 'sample')} of DeprecatedRequestsPerSec"
    unreadable = f", {plural(read.unreadable_samples, 'sample')} not readable"
    return samples + unreadable * bool(read.unreadable_samples)


def _reports(read: ReportsRead) -> str:
    others = f", {plural(read.other_files, 'other JSON file')} beside them"
    return f"{plural(len(read.files), 'report')} merged" + others * bool(read.other_files)


def _of_brokers(read: RequestLogsRead | CapturesRead) -> str:
    return f"{plural(read.requests_of_brokers, 'request')} of brokers left out"


def why(sent: Sent, client: Client, target: str) -> str:
    """Return the reason why the target does not serve the request."""
    asks = "" if client.negotiates or sent.releases.last_before_target else "; the client does not negotiate"
    if sent.target_versions is None:
        return f"{sent.why}; {target} has no {api_name(sent.api_key)}{asks}"
    return f"{sent.why}; {target} serves {versions(sent.target_versions)}{asks}"


def layout(name: str) -> str:
    """Return the description of an OffsetCommit's layout (v2 to v4); only v4 has two layouts."""
    return LAYOUTS.get(name, "with retention_time")


def overrides(count: int, of: int) -> str:
    if count == 0:
        return "no override"
    return "all with an override" if count == of else f"{plural(count, 'override')}"


def advice(retention: Retention) -> str:
    """Return KIP-211's advice: with OffsetCommit v5 and later, clients cannot set a retention."""
    return f"set offsets.retention.minutes to at least {retention.advised_minutes:,}"


def compared(retention: Retention) -> str:
    """Return this broker's setting and whether it covers the advice."""
    if retention.broker_minutes is None:
        return "not known"
    return f"{retention.broker_minutes:,}, " + ("enough" if retention.is_covered else "too little")


def error(error_code: int) -> str:
    return f"{error_name(error_code)} (retriable)" if is_retriable(error_code) else error_name(error_code)


def errors(report: Report) -> list[tuple[str, str, int]]:
    """Return (API, error, count) of all clients, most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    for row in (row for client in report.clients for row in client.errors):
        key = (api_name(row.api_key), error(row.error_code))
        counts[key] = counts.get(key, 0) + row.count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(*key, count) for key, count in ordered]


def failed_authentications(report: Report) -> list[tuple[Client, str, str, int]]:
    """Return (client, mechanism, user, count) of all clients; the user is a phrase if the client named none."""
    return [
        (client, plain(row.mechanism) or "other mechanisms", plain(row.user) or "no user named", row.count)
        for client in report.clients
        for row in client.failed_authentications
    ]


class LoginCells(NamedTuple):
    """What a report says of one login of a client."""

    client: Client
    mechanism: str
    user: str
    tls: str
    connection_count: int


def logins(report: Report) -> list[LoginCells]:
    """Return the logins of all clients."""
    return [
        LoginCells(
            client,
            plain(row.mechanism) or "no SASL",
            plain(row.user),
            f"{row.tls_version} {row.cipher}".strip() or "no TLS",
            row.count,
        )
        for client in report.clients
        for row in client.logins
    ]


def refusals(report: Report) -> list[tuple[Client, str, int]]:
    """Return (client, reason, number of connections) of what a newer Java or OpenSSL would refuse."""
    counts: dict[tuple[Client, str], int] = {}
    for client in report.clients:
        for row in client.logins:
            for reason in row.refusals:
                counts[client, reason] = counts.get((client, reason), 0) + row.count
    return [(*key, count) for key, count in counts.items()]


def request_name(api_key: int, api_version: int) -> str:
    return "not a request" if api_key < 0 else f"{api_name(api_key)} v{api_version}"
