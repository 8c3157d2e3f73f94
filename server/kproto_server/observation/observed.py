"""What was observed up to a moment: values that belong to whoever asked (`Observations.snapshot`)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class RequestsSeen:
    """Requests of one API in one version."""

    api_key: int
    api_version: int
    count: int


@dataclass(frozen=True, slots=True, order=True)
class ErrorsSeen:
    """One error code in the answers to one API in one version; ``count`` is that of the fields that had it."""

    api_key: int
    api_version: int
    error_code: int
    count: int


@dataclass(frozen=True, slots=True, order=True)
class CommitsSeen:
    """OffsetCommits that have a retention_time in their version's layouts (v2 to v4), by the layout that came."""

    api_version: int
    layout: str
    count: int
    overrides: int
    """How many had a retention_time other than -1."""


@dataclass(frozen=True, slots=True, order=True)
class ClosedSeen:
    """Frames for which the broker closed the connection; ``api_key`` -1: it was not even a request."""

    api_key: int
    api_version: int
    reason: str
    count: int


@dataclass(frozen=True, slots=True, order=True)
class ClientSeen:
    """All that one client id of one client software sent; rows are sorted."""

    client_id: str
    software_name: str
    """From ApiVersions v3 and later; empty if the client never told."""
    software_version: str
    negotiates: bool
    """Whether it asked by ApiVersions what the broker serves, on one of its connections at least."""
    requests: tuple[RequestsSeen, ...]
    errors: tuple[ErrorsSeen, ...]
    commits: tuple[CommitsSeen, ...]
    closed: tuple[ClosedSeen, ...]
    largest_retention_ms: int | None = field(compare=False)
    """The largest retention override of its OffsetCommits; None: there was none."""


@dataclass(frozen=True, slots=True, order=True)
class Snapshot:
    """What was observed up to a moment."""

    clients: tuple[ClientSeen, ...]

    @property
    def largest_retention_ms(self) -> int | None:
        """The largest retention override of any client; None: there was none."""
        return max((c.largest_retention_ms for c in self.clients if c.largest_retention_ms is not None), default=None)
