"""Errors of data directories, with one line of text for the user: what is wrong and what to do."""

from __future__ import annotations

from kproto.errors import CorruptLog, DecodeError, KprotoError, LogError, MissingPackage

UNREADABLE = (DecodeError, MissingPackage, OSError)
"""A batch that is damaged on disk or cannot be converted; a file that cannot be opened or read."""


class DirectoryInUse(LogError):
    """Another broker has locked the data directory."""


def corrupt_segment(segment: str, position: int, reason: str) -> CorruptLog:
    """Return the error for damage that a crash cannot cause."""
    remedy = "start with --repair to truncate the log there, or inspect it with kproto log dump"
    return CorruptLog(segment, position, None, f"{reason}; {remedy}")


class DamagedBatch(KprotoError, OSError):
    """A batch in a segment is damaged, so that the batches behind it cannot be found."""
