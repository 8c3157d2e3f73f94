"""What can be wrong with a log on disk."""

from __future__ import annotations

from kproto.errors import KprotoError


class LogError(KprotoError):
    """Base of the errors of logs on disk."""


class NoLog(LogError):
    """What was named holds no log; the text is one line for the user."""


class CorruptLog(LogError):
    """A log is not as it must be: in this file, from this byte on (for a checkpoint: in this line), at this offset."""

    def __init__(self, file: str, position: int, offset: int | None, reason: str, *, unit: str = "byte") -> None:
        place = f"{file} at {unit} {position}" + ("" if offset is None else f", offset {offset}")
        super().__init__(f"{place}: {reason}")
        self.file = file
        self.position = position
        self.offset = offset
        self.reason = reason
