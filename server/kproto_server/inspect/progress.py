"""A progress bar on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

LARGE = 32 * 1024 * 1024
"""Bytes from which on reading takes long enough for a progress bar."""
WIDTH = 40
MEGABYTE = 1_000_000


class Progress:
    """A bar that is redrawn at each percent; nothing is drawn for small logs or if ``stream`` is not a terminal."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._stream = stream
        self._shown = total >= LARGE and stream.isatty()
        self._done = 0
        self._percent = -1

    def add(self, size: int) -> None:
        """Advance by ``size`` bytes."""
        self._done += size
        percent = min(100, self._done * 100 // self._total) if self._total else 100
        if self._shown and percent != self._percent:
            self._percent = percent
            bar = "#" * (percent * WIDTH // 100)
            amount = f"{self._done // MEGABYTE} of {self._total // MEGABYTE} MB"
            self._stream.write(f"\r[{bar:<{WIDTH}}] {percent:3}%  {amount}")
            self._stream.flush()

    def clear(self) -> None:
        """Remove the bar."""
        if self._percent >= 0:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._percent = -1
