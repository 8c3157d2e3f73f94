"""Merge what several brokers, or several runs, have observed of the same clients."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from kproto_server.observation.observed import (
    ClientSeen,
    ClosedSeen,
    CommitsSeen,
    ErrorsSeen,
    FailedAuthenticationsSeen,
    LoginsSeen,
    RequestsSeen,
    Snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def merged(clients: Iterable[ClientSeen]) -> Snapshot:
    """Return one snapshot, in which each client id and software has the sums of its counts."""
    found: dict[tuple[str, str, str], list[ClientSeen]] = {}
    for seen in clients:
        found.setdefault((seen.client_id, seen.software_name, seen.software_version), []).append(seen)
    return Snapshot(tuple(sorted(_one(each) if len(each) > 1 else each[0] for each in found.values())))


def _one(seen: list[ClientSeen]) -> ClientSeen:
    """Return the sum of one client's observations."""
    first = seen[0]
    retention = [each.largest_retention_ms for each in seen if each.largest_retention_ms is not None]
    commits: Counter[tuple[int, str]] = Counter()
    overrides: Counter[tuple[int, str]] = Counter()
    for row in (row for each in seen for row in each.commits):
        commits[row.api_version, row.layout] += row.count
        overrides[row.api_version, row.layout] += row.overrides
    return ClientSeen(
        client_id=first.client_id,
        software_name=first.software_name,
        software_version=first.software_version,
        negotiates=any(each.negotiates for each in seen),
        requests=tuple(RequestsSeen(*row) for row in _sums(seen, "requests")),
        errors=tuple(ErrorsSeen(*row) for row in _sums(seen, "errors")),
        commits=tuple(CommitsSeen(*key, count, overrides[key]) for key, count in sorted(commits.items())),
        closed=tuple(ClosedSeen(*row) for row in _sums(seen, "closed")),
        failed_authentications=tuple(FailedAuthenticationsSeen(*row) for row in _sums(seen, "failed_authentications")),
        logins=tuple(LoginsSeen(*row) for row in _sums(seen, "logins")),
        largest_retention_ms=max(retention, default=None),
        hosts=tuple(sorted({host for each in seen for host in each.hosts})),
        principals=tuple(sorted({principal for each in seen for principal in each.principals})),
    )


def _sums(seen: list[ClientSeen], name: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table with the sum of their counts, which come last."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in (row for each in seen for row in getattr(each, name)):
        values = tuple(getattr(row, field) for field in type(row).__slots__)
        counts[values[:-1]] += values[-1]
    return [(*key, count) for key, count in sorted(counts.items())]
