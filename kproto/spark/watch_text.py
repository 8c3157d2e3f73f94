"""Findings as text: a line for each, JSON, a Prometheus text file, or one line for a chat."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING

from kproto.spark.output import EMPTY, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from kproto.spark.watch import Finding

METRICS = {
    "expiring": ("kproto_expiring_offsets", "Offsets of the group that expire soon."),
    "stalled": ("kproto_stalled_offsets", "Offsets of the group that do not move although there are records to read."),
    "rewinds": ("kproto_rewinds", "Recent commits of the group that went backwards."),
    "lag": ("kproto_lag_offsets", "Lag of the group, summed over its partitions."),
    "hot_partition": ("kproto_hot_partition_share", "Share of the partition of all commits."),
}
END = ("kproto_log_end_timestamp_seconds", "The newest timestamp in the offsets topic.")
NAMES_MAX = 3
"""The most names that a chat message lists of a rule."""


def lines(found: Sequence[Finding], end: datetime) -> str:
    """Return a line for each finding."""
    return "".join(f"{one.rule}: {_name(one)}: {printable(one.text)}\n" for one in found)


def json_text(found: Sequence[Finding], end: datetime) -> str:
    """Return an object with the end of the log and the findings."""
    return json.dumps({"log_end": end.isoformat(), "findings": [one._asdict() for one in found]}, indent=2) + "\n"


def prometheus(found: Sequence[Finding], end: datetime) -> str:
    """Return metrics for a textfile collector. A group without findings has no metrics."""
    parts = [_metric(*END, [f" {end.timestamp():.3f}"])]
    for rule, (name, text) in METRICS.items():
        values = [f"{{{_label(one)}}} {one.value}" for one in found if one.rule == rule]
        parts.append(_metric(name, text, values))
    return "".join(parts)


def chat(found: Sequence[Finding], end: datetime) -> str:
    """Return one line with the worst findings of each rule."""
    parts = []
    for rule, group in groupby(found, key=lambda one: one.rule):
        of_rule = list(group)
        listed = [f"{_name(one)} ({printable(one.text)})" for one in of_rule[:NAMES_MAX]]
        more = [f"{len(of_rule) - NAMES_MAX:,} more"] if len(of_rule) > NAMES_MAX else []
        parts.append(f"{rule}: {', '.join([*listed, *more])}")
    return ("; ".join(parts) or "no group breaks a rule") + "\n"


FORMATS: Mapping[str, Callable[[Sequence[Finding], datetime], str]] = {
    "lines": lines,
    "json": json_text,
    "prometheus": prometheus,
    "chat": chat,
}


def _name(finding: Finding) -> str:
    if finding.group_id is None:
        return f"__consumer_offsets-{finding.log_partition}"
    return printable(finding.group_id) or EMPTY


def _label(finding: Finding) -> str:
    if finding.group_id is None:
        return f'partition="{finding.log_partition}"'
    escaped = finding.group_id.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return f'group="{escaped}"'


def _metric(name: str, text: str, values: Sequence[str]) -> str:
    return f"# HELP {name} {text}\n# TYPE {name} gauge\n" + "".join(f"{name}{value}\n" for value in values)
