"""Requests with long config values are handled in slices, between which other connections are served."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SLICE_CHARACTERS = 50_000
"""Of config values: 10 ms at most, if they are lists."""


class ConfigSlices:
    """Decides when a request has had so many values that others have their turn."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left: int = SLICE_CHARACTERS

    def is_due(self, next_values: Iterable[str | None]) -> bool:
        """Return whether a slice ends here, before these values."""
        is_due = self._left < 0
        if is_due:
            self._left = SLICE_CHARACTERS
        self._left -= sum(len(value) for value in next_values if value)
        return is_due
