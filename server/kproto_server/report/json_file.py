"""The report as JSON, for other programs.

server/REPORT.md describes it. A change that breaks readers increments SCHEMA.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kproto_server.report import phrases
from kproto_server.report.model import api_name, error_name, is_retriable
from kproto_server.report.verdict import Verdict

if TYPE_CHECKING:
    from kproto_server.report.model import Client, Report, Sent

SCHEMA = 1


def render(report: Report) -> str:
    return json.dumps(as_object(report), indent=2, ensure_ascii=False) + "\n"


def as_object(report: Report) -> dict[str, Any]:
    """Return the report as a JSON object."""
    head = {
        "schema": SCHEMA,
        "kafka_version": report.kafka_version.name,
        "target": report.target.name,
        "other_patch_releases": phrases.patch_releases(report) or None,
        "would_break": report.would_break,
        "breaking_clients": len(report.breaking),
        "protocol_errors": report.protocol_errors,
        "breaks": [
            _named(sent) | _who(client) | _library(client) for client, sent in report.with_verdict(Verdict.BREAKS)
        ],
        "run": _run(report),
    }
    rest = {"retention": _retention(report), "clients": [_client(client) for client in report.clients]}
    return head | report.sources.as_object() | rest


def _run(report: Report) -> dict[str, Any] | None:
    if report.run is None:
        return None
    return {
        "command": list(report.run.command),
        "exit_code": report.run.exit_code,
        "started_at": report.run.started_at,
        "duration_seconds": report.run.duration_seconds,
    }


def _retention(report: Report) -> dict[str, Any] | None:
    if report.retention is None:
        return None
    return {
        "largest_override_ms": report.retention.largest_override_ms,
        "advised_offsets_retention_minutes": report.retention.advised_minutes,
        "offsets_retention_minutes": report.retention.broker_minutes,
    }


def _who(client: Client) -> dict[str, Any]:
    return {
        "client_id": client.client_id,
        "software_name": client.software_name or None,
        "software_version": client.software_version or None,
    }


def _library(client: Client) -> dict[str, Any]:
    found = client.library
    return {
        "library": found and found.library.name,
        "library_version": found and found.version,
        "library_first_release": found and found.library.first_release,
    }


def _client(client: Client) -> dict[str, Any]:
    return (
        _who(client)
        | _library(client)
        | {
            "would_break": client.would_break,
            "negotiates": client.negotiates,
            "hosts": list(client.hosts),
            "principals": list(client.principals),
            "requests": [_sent(sent) for sent in client.sent],
            "offset_commits": [
                {"api_version": row.api_version, "layout": row.layout, "count": row.count, "overrides": row.overrides}
                for row in client.commits
            ],
            "largest_retention_ms": client.largest_retention_ms,
            "errors": [
                _api(row.api_key, row.api_version)
                | {
                    "error_code": row.error_code,
                    "error": error_name(row.error_code),
                    "retriable": is_retriable(row.error_code),
                    "count": row.count,
                }
                for row in client.errors
            ],
            "closed": [
                _api(row.api_key, row.api_version) | {"reason": row.reason, "count": row.count} for row in client.closed
            ],
            "failed_authentications": [
                {"mechanism": row.mechanism or None, "user": row.user or None, "count": row.count}
                for row in client.failed_authentications
            ],
            "logins": [
                {
                    "mechanism": row.mechanism or None,
                    "user": row.user,
                    "tls_version": row.tls_version or None,
                    "cipher": row.cipher or None,
                    "newer_refuse": list(row.refusals),
                    "count": row.count,
                }
                for row in client.logins
            ],
        }
    )


def _sent(sent: Sent) -> dict[str, Any]:
    return _named(sent) | {"verdict": sent.verdict.value}


def _named(sent: Sent) -> dict[str, Any]:
    low, high = sent.target_versions or (None, None)
    return _api(sent.api_key, sent.api_version) | {
        "count": sent.count,
        "first_served_by": sent.releases.first,
        "last_served_by": sent.releases.last_before_target,
        "target_min_version": low,
        "target_max_version": high,
    }


def _api(api_key: int, api_version: int) -> dict[str, Any]:
    if api_key < 0:
        return {"api_key": None, "api": None, "api_version": None}
    return {"api_key": api_key, "api": api_name(api_key), "api_version": api_version}
