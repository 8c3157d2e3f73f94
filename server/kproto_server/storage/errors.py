"""What may be wrong with a data directory, for the user who has to do something about it."""

from __future__ import annotations

from kproto.errors import KprotoError


class StorageError(KprotoError):
    """A data directory that can't be used; the text is one line that says why and what to do."""


class DirectoryInUse(StorageError):
    """Another process has it."""


class CorruptLog(StorageError):
    """A log is damaged where a crash alone does no damage."""

    def __init__(self, segment: str, position: int, reason: str) -> None:
        super().__init__(
            f"{segment} is damaged at byte {position}: {reason}; start with --repair to cut it off there, "
            "or look with kproto log dump"
        )
        self.segment = segment
        self.position = position
        self.reason = reason
