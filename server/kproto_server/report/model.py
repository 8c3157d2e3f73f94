"""The content of a report, before it is text: observations, the Kafka version of the broker, and the target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages import APIS
from kproto_server.report.libraries import recognize
from kproto_server.report.sources_read import NOTHING_READ
from kproto_server.report.verdict import (
    API_VERSIONS,
    OtherPatchReleases,
    Releases,
    Verdict,
    other_patch_releases,
    releases,
    served_versions,
    verdict,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kproto_server.observation.observed import (
        ClientSeen,
        ClosedSeen,
        CommitsSeen,
        ErrorsSeen,
        FailedAuthenticationsSeen,
        LoginsSeen,
        Snapshot,
    )
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.report.libraries import Recognized
    from kproto_server.report.sources_read import SourcesRead

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Run:
    """The command that a report is about, and how it ended."""

    command: tuple[str, ...]
    exit_code: int
    started_at: str
    """ISO 8601, with the offset to UTC."""
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class Sent:
    """One API in one version from one client."""

    api_key: int
    api_version: int
    count: int
    verdict: Verdict
    releases: Releases
    """The releases that serve it, which explain why the target does not."""
    target_versions: tuple[int, int] | None
    """Lowest and highest version of the API that the target serves; None: it has no such API."""

    @property
    def name(self) -> str:
        return f"{api_name(self.api_key)} v{self.api_version}"

    @property
    def why(self) -> str:
        """Return the reason, one clause, why the target does not serve it; empty if it does."""
        if self.verdict is Verdict.SERVED:
            return ""
        if self.releases.last_before_target is not None:
            return f"last served by {self.releases.last_before_target}"
        if self.releases.first is not None:
            return f"first served by {self.releases.first}"
        return "served by no release"


@dataclass(frozen=True, slots=True)
class Client:
    """One client id of one client software."""

    client_id: str
    software_name: str
    software_version: str
    negotiates: bool
    sent: tuple[Sent, ...]
    commits: tuple[CommitsSeen, ...]
    errors: tuple[ErrorsSeen, ...]
    closed: tuple[ClosedSeen, ...]
    failed_authentications: tuple[FailedAuthenticationsSeen, ...]
    logins: tuple[LoginsSeen, ...]
    largest_retention_ms: int | None
    hosts: tuple[str, ...]
    """Where its connections come from."""
    principals: tuple[str, ...]
    library: Recognized | None
    """None: nothing that it sent shows it."""

    @property
    def software(self) -> str:
        """Return the software's name and version as the client sent them; empty if it did not."""
        return f"{self.software_name} {self.software_version}".strip()

    @property
    def request_count(self) -> int:
        return sum(sent.count for sent in self.sent)

    @property
    def would_break(self) -> bool:
        return any(self.with_verdict(Verdict.BREAKS))

    @property
    def closed_count(self) -> int:
        """Return how many of its connections the broker closed."""
        return sum(row.count for row in self.closed)

    def with_verdict(self, wanted: Verdict) -> tuple[Sent, ...]:
        return tuple(sent for sent in self.sent if sent.verdict is wanted)


@dataclass(frozen=True, slots=True)
class Retention:
    """Retention overrides of OffsetCommit v2 to v4, and KIP-211's advice."""

    largest_override_ms: int
    advised_minutes: int
    """The least offsets.retention.minutes that keeps every offset as long as its client asked."""
    broker_minutes: int | None
    """offsets.retention.minutes of this run's broker; None: a log does not show it."""

    @property
    def is_covered(self) -> bool:
        return self.broker_minutes is not None and self.broker_minutes >= self.advised_minutes


@dataclass(frozen=True)
class Report:
    """The content of one report."""

    target: KafkaVersion
    kafka_version: KafkaVersion
    clients: tuple[Client, ...]
    retention: Retention | None
    """None: no client sent a retention override."""
    other_patch_releases: OtherPatchReleases | None = None
    """The patch releases of the target's line that serve other versions; None: there are none."""
    run: Run | None = None
    sources: SourcesRead = NOTHING_READ

    @cached_property
    def request_count(self) -> int:
        return sum(client.request_count for client in self.clients)

    @cached_property
    def requesting(self) -> tuple[Client, ...]:
        """Return the clients that sent a request; others only opened a connection, or sent what is no request."""
        return tuple(client for client in self.clients if client.sent)

    @cached_property
    def breaking(self) -> tuple[Client, ...]:
        """Return the clients that would break."""
        return tuple(client for client in self.clients if client.would_break)

    @property
    def would_break(self) -> bool:
        return bool(self.breaking)

    @cached_property
    def protocol_errors(self) -> int:
        """Return how many connections the broker closed because of what the client sent."""
        return sum(client.closed_count for client in self.clients)

    def with_verdict(self, wanted: Verdict) -> Iterator[tuple[Client, Sent]]:
        return ((client, sent) for client in self.clients for sent in client.with_verdict(wanted))

    def commits(self) -> Mapping[tuple[int, str], tuple[int, int]]:
        """Return, by (version, layout) of OffsetCommits with a retention_time, the count and the count of overrides."""
        found: dict[tuple[int, str], tuple[int, int]] = {}
        for row in (row for client in self.clients for row in client.commits):
            count, overrides = found.get((row.api_version, row.layout), (0, 0))
            found[row.api_version, row.layout] = (count + row.count, overrides + row.overrides)
        return dict(sorted(found.items()))


def build(
    snapshot: Snapshot,
    *,
    kafka_version: KafkaVersion,
    target: KafkaVersion,
    offsets_retention_minutes: int | None,
    run: Run | None = None,
    sources: SourcesRead = NOTHING_READ,
) -> Report:
    """Return the report on a broker of `kafka_version`: each request seen is checked against `target`.

    Args:
        offsets_retention_minutes: the setting of the broker; None: unknown.
    """
    return Report(
        target=target,
        kafka_version=kafka_version,
        clients=tuple(_client(seen, kafka_version, target) for seen in snapshot.clients),
        retention=_retention(snapshot.largest_retention_ms, offsets_retention_minutes),
        other_patch_releases=other_patch_releases(target),
        run=run,
        sources=sources,
    )


def api_name(api_key: int) -> str:
    return APIS.get(api_key, f"API key {api_key}")


def error_name(error_code: int) -> str:
    try:
        return ErrorCode(error_code).name
    except ValueError:
        return f"error {error_code}"


def is_retriable(error_code: int) -> bool:
    """Return whether clients retry after the error.

    UNKNOWN_TOPIC_OR_PARTITION is one of them: clients retry until a topic is created.
    """
    try:
        return ErrorCode(error_code).retriable
    except ValueError:
        return False


def _client(seen: ClientSeen, kafka_version: KafkaVersion, target: KafkaVersion) -> Client:
    counts = _counts(seen)

    def checked(api_key: int, api_version: int, count: int) -> Sent:
        return Sent(
            api_key=api_key,
            api_version=api_version,
            count=count,
            verdict=verdict(
                api_key, api_version, negotiates=seen.negotiates, kafka_version=kafka_version, target=target
            ),
            releases=releases(api_key, api_version, target),
            target_versions=served_versions(api_key, target),
        )

    return Client(
        client_id=seen.client_id,
        software_name=seen.software_name,
        software_version=seen.software_version,
        negotiates=seen.negotiates,
        sent=tuple(checked(*key, count) for key, count in sorted(counts.items())),
        commits=seen.commits,
        errors=tuple(row for row in seen.errors if not _is_protocol(row)),
        closed=seen.closed,
        failed_authentications=seen.failed_authentications,
        logins=seen.logins,
        largest_retention_ms=seen.largest_retention_ms,
        hosts=seen.hosts,
        principals=seen.principals,
        library=recognize(
            seen.client_id, seen.software_name, seen.software_version, counts, negotiates=seen.negotiates
        ),
    )


def _is_protocol(row: ErrorsSeen) -> bool:
    """Return whether an error code is a step of the protocol, which every client takes, and no failure.

    A new member receives its id with MEMBER_ID_REQUIRED (KIP-394), and a client that is newer than the broker receives
    the broker's versions with UNSUPPORTED_VERSION (KIP-511).
    """
    if row.api_key == API_VERSIONS:
        return row.error_code == ErrorCode.UNSUPPORTED_VERSION
    return row.error_code == ErrorCode.MEMBER_ID_REQUIRED


def _counts(seen: ClientSeen) -> dict[tuple[int, int], int]:
    """Return the number of requests by (API key, version).

    A version that the broker's own release does not serve closed the connection before it was counted as a request;
    it counts here, because the client sent it.
    """
    counts = {(row.api_key, row.api_version): row.count for row in seen.requests}
    refused: dict[tuple[int, int], int] = {}
    for row in _known(seen.closed):
        refused[row.api_key, row.api_version] = refused.get((row.api_key, row.api_version), 0) + row.count
    return refused | counts


def _known(closed: Iterable[ClosedSeen]) -> Iterator[ClosedSeen]:
    """Yield the rows of APIs that any Kafka release has."""
    return (row for row in closed if row.api_key in APIS)


def _retention(largest_override_ms: int | None, broker_minutes: int | None) -> Retention | None:
    if largest_override_ms is None:
        return None
    rounded_up = -(-largest_override_ms // MINUTE_MS)
    return Retention(largest_override_ms, max(1, rounded_up), broker_minutes)
