"""Read request reports without Spark, as rows for the job `versions`."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto.spark.embedded.frame import DataFrame
    from kproto.spark.embedded.session import EmbeddedSession

COUNT_MAX = 2**48
"""The most requests of a row: the sums of thousands of reports are 64-bit integers."""
_TEXT: pa.DataType = pa.string()
_REQUEST: pa.DataType = pa.struct(
    {
        "api_key": pa.int32(),
        "api": _TEXT,
        "api_version": pa.int32(),
        "count": pa.int64(),
        "verdict": _TEXT,
        "first_served_by": _TEXT,
        "last_served_by": _TEXT,
    }
)
_CLIENT: pa.DataType = pa.struct(
    {"client_id": _TEXT, "software_name": _TEXT, "software_version": _TEXT, "requests": pa.list_(_REQUEST)}
)
SCHEMA: pa.Schema = pa.schema(
    {
        "schema": pa.int32(),
        "target": _TEXT,
        "run": pa.struct({"started_at": _TEXT}),
        "clients": pa.list_(_CLIENT),
        "problem": _TEXT,
        "path": _TEXT,
    }
)


def read_reports(session: EmbeddedSession, paths: Sequence[str], audited: Mapping[str, str]) -> DataFrame:
    """Read files, and the reports of other files by their paths. A file that is not a report has a null ``schema``."""
    rows = [{"path": Path(path).absolute().as_uri(), **_report(Path(path).read_bytes())} for path in paths]
    rows += [{"path": path, **_report(report.encode())} for path, report in audited.items()]
    return session.of_arrow(pa.Table.from_pylist(rows, schema=SCHEMA))


def _report(text: bytes) -> dict[str, Any]:
    """Return the fields of a report that are read; none if the text is something else."""
    try:
        report = json.loads(text)
        if not isinstance(report, dict):
            return {}
        pa.Table.from_pylist([report], schema=SCHEMA)  # checks the types
        _check_values(report)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}
    return {name: report.get(name) for name in SCHEMA.names if name != "path"}


def _check_values(report: dict[str, Any]) -> None:
    """Check what the types of a report leave open.

    Raises:
        ValueError: its time is none, or a count is beyond what brokers count.
    """
    started_at = (report.get("run") or {}).get("started_at")
    if started_at is not None:
        report["run"] = {"started_at": datetime.fromisoformat(started_at).isoformat()}
    for client in report.get("clients") or ():
        for request in (client or {}).get("requests") or ():
            if not 0 <= ((request or {}).get("count") or 0) <= COUNT_MAX:
                raise ValueError(f"not a count of requests: {request['count']}")
