"""The progress of a command that reads large files: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

LARGE = 32 * 1024 * 1024
"""Bytes from which on reading takes long enough for a progress bar."""
WIDTH = 40
MEGABYTE = 1_000_000
LINE_INTERVAL_S = 10.0
"""Shortest time between two lines where there is no terminal, for example in a file."""


class Progress:
    """A bar that is redrawn at each percent, or a line every ten seconds if ``stream`` is not a terminal.

    Nothing is shown for small files, and nothing more once the stream cannot be written.
    """

    def __init__(self, total: int, stream: TextIO | None, clock: Callable[[], float] = monotonic) -> None:
        """Begin to count.

        Args:
            total: bytes to read.
            stream: None: nothing is shown.
            clock: returns the time in seconds.
        """
        self._total = total
        self._stream = stream if total >= LARGE else None
        self._clock = clock
        self._is_terminal = self._stream is not None and self._stream.isatty()
        self._next_line_at = clock() + LINE_INTERVAL_S
        self._done = 0
        self._percent = -1

    def add(self, size: int) -> None:
        """Advance by ``size`` bytes."""
        self._done += size
        if self._stream is None:
            return
        percent = min(100, self._done * 100 // self._total)
        amount = f"{self._done // MEGABYTE} of {self._total // MEGABYTE} MB"
        if self._is_terminal:
            if percent != self._percent:
                self._percent = percent
                bar = "#" * (percent * WIDTH // 100)
                self._write(f"\r[{bar:<{WIDTH}}] {percent:3}%  {amount}")
        elif (now := self._clock()) >= self._next_line_at:
            self._next_line_at = now + LINE_INTERVAL_S
            self._write(f"{percent:3}%  {amount}\n")

    def clear(self) -> None:
        """Remove the bar."""
        if self._percent >= 0:
            self._write("\r\x1b[K")
            self._percent = -1

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # its reader is gone; the result does not need it
            self._stream = None
