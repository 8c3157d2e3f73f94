"""Read reports of `kproto run`, `serve`, `audit` and `proxy`, to make one of many."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kproto.errors import KprotoError
from kproto_server.observation.observe import NO_API
from kproto_server.observation.observed import (
    ClientSeen,
    ClosedSeen,
    CommitsSeen,
    ErrorsSeen,
    FailedAuthenticationsSeen,
    LoginsSeen,
    RequestsSeen,
)
from kproto_server.releases.kafka_version import KafkaVersion, kafka_version_names
from kproto_server.report.json_file import SCHEMA

if TYPE_CHECKING:
    from typing import BinaryIO

SIZE_MAX_BYTES = 256 * 1024 * 1024


class BadReport(KprotoError):
    """A file is no report; the text is one clause for the user."""


class ReportFiles:
    """The clients of several reports: `read` takes them."""

    def __init__(self) -> None:
        self.clients: list[ClientSeen] = []
        self._versions: list[KafkaVersion] = []

    @property
    def kafka_version(self) -> KafkaVersion | None:
        """Return the oldest release that a report has: what its clients send may be less than what they can."""
        names = kafka_version_names()
        ranked = [(names.index(each.name) if each.name in names else len(names), each) for each in self._versions]
        return min(ranked, key=lambda each: each[0])[1] if ranked else None

    def read(self, stream: BinaryIO) -> None:
        """Read a report in JSON.

        Raises:
            BadReport: it is none, or of a newer kproto.
        """
        text = stream.read(SIZE_MAX_BYTES)
        try:
            report = json.loads(text)
            schema, clients = report["schema"], report["clients"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise BadReport("no report of kproto in JSON") from None
        if schema != SCHEMA:
            raise BadReport(f"a report of schema {schema}; this kproto reads {SCHEMA}")
        try:
            self._versions.append(KafkaVersion.named(report["kafka_version"]))
            self.clients += [_client(each) for each in clients]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BadReport("a report that lacks fields, or has others") from None


def _client(found: dict[str, Any]) -> ClientSeen:
    """Return a client of a report.

    Raises:
        ValueError: or TypeError, KeyError, AttributeError: a field has another type, or is not there.
    """
    retention = found["largest_retention_ms"]
    return ClientSeen(
        client_id=str(found["client_id"]),
        software_name=str(found["software_name"] or ""),
        software_version=str(found["software_version"] or ""),
        negotiates=bool(found["negotiates"]),
        requests=tuple(
            RequestsSeen(int(row["api_key"]), int(row["api_version"]), int(row["count"])) for row in found["requests"]
        ),
        errors=tuple(
            ErrorsSeen(int(row["api_key"]), int(row["api_version"]), int(row["error_code"]), int(row["count"]))
            for row in found["errors"]
        ),
        commits=tuple(
            CommitsSeen(int(row["api_version"]), str(row["layout"]), int(row["count"]), int(row["overrides"]))
            for row in found["offset_commits"]
        ),
        closed=tuple(
            ClosedSeen(_number(row["api_key"]), _number(row["api_version"]), str(row["reason"]), int(row["count"]))
            for row in found["closed"]
        ),
        failed_authentications=tuple(
            FailedAuthenticationsSeen(str(row["mechanism"] or ""), str(row["user"] or ""), int(row["count"]))
            for row in found["failed_authentications"]
        ),
        logins=tuple(
            LoginsSeen(
                str(row["mechanism"] or ""),
                str(row["user"]),
                str(row["tls_version"] or ""),
                str(row["cipher"] or ""),
                tuple(map(str, row["newer_refuse"])),
                int(row["count"]),
            )
            for row in found.get("logins", ())
        ),
        largest_retention_ms=None if retention is None else int(retention),
        hosts=tuple(map(str, found.get("hosts", ()))),
        principals=tuple(map(str, found.get("principals", ()))),
    )


def _number(value: int | None) -> int:
    return NO_API if value is None else int(value)
