"""The values of a snapshot of `Observations`; they belong to the caller and never change."""

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
    """One error code in the responses of one API version; ``count`` is the number of fields that held it."""

    api_key: int
    api_version: int
    error_code: int
    count: int


@dataclass(frozen=True, slots=True, order=True)
class CommitsSeen:
    """OffsetCommit requests of v2 to v4, which may carry a retention_time, by the layout received."""

    api_version: int
    layout: str
    count: int
    overrides: int
    """Number of requests with a retention_time other than -1."""


@dataclass(frozen=True, slots=True, order=True)
class ClosedSeen:
    """Frames for which the broker closed the connection; ``api_key`` -1: the frame has no readable header."""

    api_key: int
    api_version: int
    reason: str
    count: int


@dataclass(frozen=True, slots=True, order=True)
class FailedAuthenticationsSeen:
    """Authentications of one user by one mechanism that failed."""

    mechanism: str
    user: str
    """The user that the client named; empty: it named none that the broker could read."""
    count: int


@dataclass(frozen=True, slots=True, order=True)
class LoginsSeen:
    """Connections of one user with the same mechanism of SASL and the same TLS."""

    mechanism: str
    """Empty: without SASL."""
    user: str
    """By SASL or the certificate; ANONYMOUS: the client has neither."""
    tls_version: str
    """Empty: without TLS."""
    cipher: str
    """As OpenSSL names it; empty: without TLS."""
    refusals: tuple[str, ...]
    """What a newer Java or OpenSSL would refuse of it."""
    count: int


@dataclass(frozen=True, slots=True, order=True)
class ClientSeen:
    """Everything that one client id of one client software sent; rows are sorted."""

    client_id: str
    software_name: str
    """From ApiVersions v3 and later; empty if the client did not send it."""
    software_version: str
    negotiates: bool
    """Whether the client sent ApiVersions on at least one of its connections."""
    requests: tuple[RequestsSeen, ...]
    errors: tuple[ErrorsSeen, ...]
    commits: tuple[CommitsSeen, ...]
    closed: tuple[ClosedSeen, ...]
    failed_authentications: tuple[FailedAuthenticationsSeen, ...]
    logins: tuple[LoginsSeen, ...]
    """Of connections with TLS or SASL."""
    largest_retention_ms: int | None = field(compare=False)
    """The largest retention override of its OffsetCommit requests; None: it sent none."""
    hosts: tuple[str, ...] = field(default=(), compare=False)
    """Where its connections come from; of many hosts the first ones."""
    principals: tuple[str, ...] = field(default=(), compare=False)
    """Who it is for the brokers, as far as they say it."""


@dataclass(frozen=True, slots=True, order=True)
class Snapshot:
    """Everything observed up to a moment."""

    clients: tuple[ClientSeen, ...]

    @property
    def largest_retention_ms(self) -> int | None:
        """Return the largest retention override of any client; None: no client sent one."""
        return max((c.largest_retention_ms for c in self.clients if c.largest_retention_ms is not None), default=None)
