"""Errors of a data directory. Each text is one line that says what is wrong and what to do."""

from __future__ import annotations

from kproto.errors import CorruptLog, LogError


class DirectoryInUse(LogError):
    """Another process uses the data directory."""


def corrupt_segment(segment: str, position: int, reason: str) -> CorruptLog:
    """Return the error for damage that a crash alone does not cause."""
    remedy = "start with --repair to truncate the log there, or look with kproto log dump"
    return CorruptLog(segment, position, None, f"{reason}; {remedy}")
