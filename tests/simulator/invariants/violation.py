"""What an invariant reports."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """A rule that a history breaks."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"
