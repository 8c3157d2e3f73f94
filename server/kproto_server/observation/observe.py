"""Count what clients send and which errors they receive; the report reads the counts.

Theory of operation. Each open connection has a tally of its own, because the client's software may become known only
after its first requests (ApiVersions v3 and later carries its name). `disconnected` adds the tally to that of all
closed connections of the same software. A `snapshot` merges both into one `ClientSeen` for each client id and software,
in values that belong to the caller.

Only the broker's thread counts (D8); any thread may call `snapshot`. Counting takes no lock: a snapshot copies each
table in one step of the interpreter before it reads it. A lock guards only the move of a whole tally, which a snapshot
could otherwise see twice or not at all.
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.observation.observed import ClientSeen
    from kproto_server.observation.observed import Snapshot as Snapshot
    from kproto_server.requests.context import ConnectionInfo

API_VERSIONS = 18
NO_API = -1
"""API key and version of what has no readable header."""
NO_OVERRIDE = -1
"""The retention_time of an OffsetCommit without a retention override."""

CLIENT_IDS_MAX = 1000
"""Client ids counted separately, for each connection and for each software; further ones are counted as `OTHERS`.
Without a limit, a client that invents an id for each request would exhaust the memory. Real programs use a few."""
OTHERS = "(other client ids)"

NAME_LENGTH_MAX = 256
"""Characters that are kept of a client id, a software name or a reason."""

SOFTWARE_MAX = 1000
"""Software names and versions of closed connections that are counted separately."""
OTHER_SOFTWARE = "(other software)"

OWN_ROWS_MAX = 64
"""Counts that each connection and each software may have in any case: clients have fewer."""
SHARED_ROWS_MAX = 100_000
"""Further counts, of all connections and software together; beyond it, client ids are counted as `OTHERS`."""

REASONS_MAX = 1000
"""Reasons of closed connections counted separately, for each connection and for each software. Reasons quote the
request, so a hostile client could produce any number of them."""
OTHER_REASONS = "(other reasons)"

FAILED_AUTHENTICATIONS_MAX = 1000
"""Mechanisms and users of failed authentications counted separately, for each connection."""
LOGINS_MAX = 1000
"""Users, mechanisms and TLS parameters counted separately, for each software."""
OTHER_USERS = "(other users)"

ORIGINS_MAX = 100
"""Hosts with principals that are kept of each client id and software."""


RequestCounts = dict[tuple[str, int, int], int]
"""Client id, API key and API version -> requests."""


class RepeatedRequests:
    """Counts requests that differ in nothing that is observed, for code that does not decode each of them.

    `Observations.repeated` returns one; the caller increments `count`, which is read when the others are.
    """

    __slots__ = ("api_key", "api_version", "client_id", "count", "layout", "retention_time_ms")

    def __init__(
        self, client_id: str, api_key: int, api_version: int, layout: str | None, retention_time_ms: int
    ) -> None:
        self.client_id: str = client_id
        self.api_key: int = api_key
        self.api_version: int = api_version
        self.layout: str | None = layout
        self.retention_time_ms: int = retention_time_ms
        """The largest of them, or `NO_OVERRIDE`."""
        self.count: int = 0


def shortened(name: str) -> str:
    """Return a name, or the beginning of a long one with what distinguishes it from others that begin so."""
    if len(name) <= NAME_LENGTH_MAX:
        return name
    checksum = crc32(name.encode(errors="surrogatepass"))
    return f"{name[:NAME_LENGTH_MAX]}... ({len(name)} characters, {checksum:08x})"


class _SharedRows:
    """The counts that all tallies may have beyond their own allowance."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left: int = SHARED_ROWS_MAX


class _Tally:
    """Counts of one connection, or of all closed connections of one software. Each key begins with the client id."""

    __slots__ = (
        "client_ids",
        "closed",
        "commits",
        "connection",
        "errors",
        "failed_authentications",
        "logins",
        "negotiated",
        "origins",
        "overrides",
        "repeated",
        "requests",
        "retention",
        "row_count",
        "shared",
    )

    def __init__(self, connection: ConnectionInfo | None = None, shared: _SharedRows | None = None) -> None:
        """``shared``: None: the tally of a snapshot, which has what other tallies have."""
        self.connection = connection
        """Referenced as long as the tally lives, so that no other object gets its ``id()``."""
        self.shared = shared
        self.row_count: int = 0
        """Client ids and counts."""
        self.client_ids: set[str] = set()
        self.negotiated: set[str] = set()
        """Client ids that sent ApiVersions."""
        self.origins: dict[str, dict[tuple[str, str], None]] = {}
        """Client id -> hosts and principals of the connections that were added, in their order."""
        self.requests: RequestCounts = {}
        self.errors: dict[tuple[str, int, int, int], int] = {}
        self.commits: dict[tuple[str, int, str], int] = {}
        self.overrides: dict[tuple[str, int, str], int] = {}
        self.closed: dict[tuple[str, int, int, str], int] = {}
        self.failed_authentications: dict[tuple[str, str, str], int] = {}
        self.logins: dict[tuple[str, str, str, str, str, tuple[str, ...]], int] = {}
        """Of connections that have ended: the tally of an open one has what its `connection` says."""
        self.retention: dict[str, int] = {}
        self.repeated: dict[tuple[str, int, int, str | None, bool], RepeatedRequests] = {}
        """The key ends with whether there is a retention override."""

    def known(self, client_id: str) -> str:
        """Return the client id to count under: this one, or `OTHERS` beyond a limit."""
        if client_id not in self.client_ids:
            client_id = shortened(client_id)
            if client_id not in self.client_ids and (len(self.client_ids) >= CLIENT_IDS_MAX or not self._takes_row()):
                client_id = OTHERS
            self.client_ids.add(client_id)
        return client_id

    def count(self, table: dict[Any, int], row: tuple[Any, ...], count: int = 1) -> None:
        """Add to a count of a client id, the first value of the row; a new one counts for `OTHERS` beyond the limit."""
        known = table.get(row)
        if known is not None:
            table[row] = known + count
            return
        if row[0] not in self.client_ids:
            row = (self.known(row[0]), *row[1:])
            known = table.get(row)
        if known is None and not self._takes_row():
            self.client_ids.add(OTHERS)
            row = (OTHERS, *row[1:])
            known = table.get(row)
        table[row] = count if known is None else known + count

    def _takes_row(self) -> bool:
        """Count a new row and return True, unless there are as many as may be."""
        if self.shared is not None and self.row_count >= OWN_ROWS_MAX:
            if self.shared.left <= 0:
                return False
            self.shared.left -= 1
        self.row_count += 1
        return True

    def release_rows(self) -> None:
        """Return the rows to those that all tallies share, as the tally is dropped."""
        if self.shared is not None:
            self.shared.left += max(0, self.row_count - OWN_ROWS_MAX)

    def add_requests(self, client_id: str, api_key: int, api_version: int, count: int) -> None:
        if api_key == API_VERSIONS:
            self.negotiated.add(self.known(client_id))
        self.count(self.requests, (client_id, api_key, api_version), count)

    def repeated_requests(
        self, client_id: str, api_key: int, api_version: int, layout: str | None, retention_time_ms: int
    ) -> RepeatedRequests:
        """Return the counter of requests that are alike."""
        client_id = self.known(client_id)
        key = (client_id, api_key, api_version, layout, retention_time_ms != NO_OVERRIDE)
        if key not in self.repeated and not self._takes_row():
            self.client_ids.add(OTHERS)
            key = (OTHERS, *key[1:])
        found = self.repeated.get(key)
        if found is None:
            found = self.repeated[key] = RepeatedRequests(*key[:4], retention_time_ms)
        found.retention_time_ms = max(found.retention_time_ms, retention_time_ms)
        return found

    def raise_retention(self, client_id: str, retention_time_ms: int) -> None:
        self.retention[client_id] = max(retention_time_ms, self.retention.get(client_id, retention_time_ms))

    def add_commits(self, client_id: str, api_version: int, layout: str, retention_time_ms: int, count: int) -> None:
        self.count(self.commits, (client_id, api_version, layout), count)
        if retention_time_ms != NO_OVERRIDE:
            self.count(self.overrides, (client_id, api_version, layout), count)
            self.raise_retention(self.known(client_id), retention_time_ms)

    def add(self, other: _Tally) -> None:
        """Add the counts of another tally."""
        for seen in other.repeated.copy().values():
            if count := seen.count:
                self.add_requests(seen.client_id, seen.api_key, seen.api_version, count)
                if seen.layout is not None:
                    self.add_commits(seen.client_id, seen.api_version, seen.layout, seen.retention_time_ms, count)
        requests = self.requests
        for request, count in other.requests.copy().items():
            if request in requests:
                requests[request] += count
            else:
                self.add_requests(*request, count)
        for name in ("errors", "commits", "overrides", "closed", "failed_authentications", "logins"):
            if theirs := getattr(other, name):
                mine = getattr(self, name)
                for row, count in theirs.copy().items():
                    self.count(mine, row, count)
        for client_id, retention_time_ms in other.retention.copy().items():
            self.raise_retention(self.known(client_id), retention_time_ms)
        self.negotiated |= other.negotiated & self.client_ids
        if other.connection is not None:
            login = _login(other.connection)
            origin = other.connection.client_host, shortened(other.connection.principal)
            for client_id in other.client_ids.copy():
                self._add_origin(client_id, origin)
                if login is not None:
                    self.add_login(client_id, login)
        for client_id, origins in other.origins.copy().items():
            for origin in origins.copy():
                self._add_origin(client_id, origin)

    def add_login(self, client_id: str, login: tuple[str, str, str, str, tuple[str, ...]]) -> None:
        """Count a connection of a user who has logged in."""
        if len(self.logins) >= LOGINS_MAX and (client_id, *login) not in self.logins:
            login = ("", OTHER_USERS, "", "", ())
        self.count(self.logins, (client_id, *login))

    def _add_origin(self, client_id: str, origin: tuple[str, str]) -> None:
        """Add where a client comes from, unless as many are known as may be."""
        origins = self.origins.setdefault(self.known(client_id), {})
        if origin not in origins and len(origins) < ORIGINS_MAX and (not origins or self._takes_row()):
            origins[origin] = None


def _login(connection: ConnectionInfo) -> tuple[str, str, str, str, tuple[str, ...]] | None:
    """Return mechanism, user and TLS of a connection; None: it has neither TLS nor SASL, or has not logged in."""
    authentication, tls = connection.authentication or connection.seen_login, connection.tls
    if authentication is None and tls is None:
        return None
    if authentication is not None and not authentication.is_complete:
        return None
    mechanism = "" if authentication is None else authentication.mechanism or ""
    user = shortened(connection.principal.partition(":")[2])
    return (mechanism, user, "", "", ()) if tls is None else (mechanism, user, tls.version, tls.cipher, tls.refusals)


class Observations:
    """Everything that a broker process has observed since its start, or since `reset`."""

    def __init__(self) -> None:
        self._live: dict[int, _Tally] = {}
        self._gone: dict[tuple[str, str], _Tally] = {}
        self._shared = _SharedRows()
        self._moving = allocate_lock()

    def request(self, connection: ConnectionInfo, client_id: str, api_key: int, api_version: int) -> RequestCounts:
        """Count a request; return the counts of the connection's requests, for as long as it is open.

        A caller that finds a request's row there may count the next request of this row itself.
        """
        tally = self._live.get(id(connection)) or self._new_tally(connection)
        tally.add_requests(client_id, api_key, api_version, 1)
        return tally.requests

    def repeated(
        self,
        connection: ConnectionInfo,
        client_id: str,
        api_key: int,
        api_version: int,
        layout: str | None,
        retention_time_ms: int,
    ) -> RepeatedRequests:
        """Return the counter of requests that `request`, and `commit_layout` unless ``layout`` is None, would count."""
        tally = self._live.get(id(connection)) or self._new_tally(connection)
        return tally.repeated_requests(client_id, api_key, api_version, layout, retention_time_ms)

    def errors(
        self, connection: ConnectionInfo, client_id: str, api_key: int, api_version: int, codes: Iterable[int]
    ) -> None:
        """Count error codes that were sent to a client."""
        tally = self._live.get(id(connection)) or self._new_tally(connection)
        for code in codes:
            tally.count(tally.errors, (client_id, api_key, api_version, int(code)))

    def commit_layout(
        self, connection: ConnectionInfo, client_id: str, api_version: int, layout: str, retention_time_ms: int
    ) -> None:
        """Count an OffsetCommit of v2 to v4: the layout received (D1) and the retention override (D2)."""
        tally = self._live.get(id(connection)) or self._new_tally(connection)
        tally.add_commits(client_id, api_version, layout, retention_time_ms, 1)

    def closed(self, connection: ConnectionInfo, client_id: str, api_key: int, api_version: int, reason: str) -> None:
        """Count a frame that made the broker close the connection."""
        tally = self._live.get(id(connection)) or self._new_tally(connection)
        if len(tally.closed) >= REASONS_MAX or self._shared.left <= 0:
            api_key, api_version, reason = NO_API, NO_API, OTHER_REASONS
        if api_key == API_VERSIONS:
            tally.negotiated.add(tally.known(client_id))
        tally.count(tally.closed, (client_id, api_key, api_version, shortened(reason)))

    def failed_authentication(self, connection: ConnectionInfo, client_id: str, mechanism: str, user: str) -> None:
        """Count an authentication that has failed. ``user``: the user that the client named; empty: it named none."""
        tally = self._live.get(id(connection)) or self._new_tally(connection)
        if len(tally.failed_authentications) >= FAILED_AUTHENTICATIONS_MAX or self._shared.left <= 0:
            mechanism, user = "", OTHER_USERS
        tally.count(tally.failed_authentications, (client_id, shortened(mechanism), shortened(user)))

    def disconnected(self, connection: ConnectionInfo) -> None:
        """Move the counts of a closed connection to those of its software."""
        with self._moving:
            tally = self._live.pop(id(connection), None)
            if tally is not None:
                tally.release_rows()
                self._of_software(connection).add(tally)

    def forget(self, connection: ConnectionInfo) -> None:
        """Delete the counts of a connection."""
        tally = self._live.pop(id(connection), None)
        if tally is not None:
            tally.release_rows()

    def reset(self) -> None:
        """Delete all counts; the software names of open connections stay."""
        with self._moving:
            self._gone = {}
            self._shared = _SharedRows()
            for key, tally in self._live.items():
                fresh = self._live[key] = _Tally(tally.connection, self._shared)
                fresh.negotiated = tally.negotiated
                fresh.requests = tally.requests  # its connection goes on counting there
                fresh.requests.clear()
                fresh.repeated = tally.repeated  # their owners go on counting
                for repeated in tally.repeated.values():
                    repeated.count = 0

    def snapshot(self) -> Snapshot:
        """Return all counts so far, as values that belong to the caller."""
        from kproto_server.observation.observed import Snapshot

        by_software: dict[tuple[str, str], _Tally] = {}
        with self._moving:
            for software, tally in self._gone.items():
                by_software.setdefault(software, _Tally()).add(tally)
            live = self._live.copy()
        # Without the lock, as the end of a connection waits for it: a tally that is moved now was not among the above.
        for tally in live.values():
            if tally.connection is not None:
                software = tally.connection.software_name, tally.connection.software_version
                by_software.setdefault(software, _Tally()).add(tally)
        seen = [client for software, tally in by_software.items() for client in _clients(software, tally)]
        return Snapshot(clients=tuple(sorted(seen)))

    def _new_tally(self, connection: ConnectionInfo) -> _Tally:
        tally = self._live[id(connection)] = _Tally(connection, self._shared)
        return tally

    def _of_software(self, connection: ConnectionInfo) -> _Tally:
        software = connection.software_name, connection.software_version
        if software not in self._gone:
            if len(self._gone) >= SOFTWARE_MAX:
                software = OTHER_SOFTWARE, ""
            self._gone.setdefault(software, _Tally(shared=self._shared))
        return self._gone[software]


def _clients(software: tuple[str, str], tally: _Tally) -> Iterator[ClientSeen]:
    from kproto_server.observation.observed import (
        ClientSeen,
        ClosedSeen,
        CommitsSeen,
        ErrorsSeen,
        FailedAuthenticationsSeen,
        LoginsSeen,
        RequestsSeen,
    )

    requests, errors, closed = _by_client(tally.requests), _by_client(tally.errors), _by_client(tally.closed)
    commits = _by_client(tally.commits)
    failed, logins = _by_client(tally.failed_authentications), _by_client(tally.logins)
    for client_id in sorted(tally.client_ids):
        yield ClientSeen(
            client_id=client_id,
            software_name=software[0],
            software_version=software[1],
            negotiates=client_id in tally.negotiated,
            requests=tuple(RequestsSeen(*row) for row in requests.get(client_id, ())),
            errors=tuple(ErrorsSeen(*row) for row in errors.get(client_id, ())),
            commits=tuple(
                CommitsSeen(api_version, layout, count, tally.overrides.get((client_id, api_version, layout), 0))
                for api_version, layout, count in commits.get(client_id, ())
            ),
            closed=tuple(ClosedSeen(*row) for row in closed.get(client_id, ())),
            failed_authentications=tuple(FailedAuthenticationsSeen(*row) for row in failed.get(client_id, ())),
            logins=tuple(LoginsSeen(*row) for row in logins.get(client_id, ())),
            largest_retention_ms=tally.retention.get(client_id),
            hosts=tuple(sorted({host.removeprefix("/") for host, _ in tally.origins.get(client_id, ())} - {""})),
            principals=tuple(sorted({principal for _, principal in tally.origins.get(client_id, ())})),
        )


def _by_client(table: dict[Any, int]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the sorted rows of each client, without its id and with the count."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for key, count in sorted(table.items()):
        found.setdefault(key[0], []).append((*key[1:], count))
    return found
