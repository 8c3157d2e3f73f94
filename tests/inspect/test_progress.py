"""The progress of large files, with a clock of the test."""

from __future__ import annotations

import io

from kproto_server.inspect.progress import LARGE, LINE_INTERVAL_S, Progress

MEGABYTE = 1_000_000
TOTAL = 100 * MEGABYTE


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_terminal_has_a_bar_for_each_percent_which_is_removed() -> None:
    stream = Terminal()
    progress = Progress(TOTAL, stream)
    for _ in range(8):
        progress.add(MEGABYTE // 4)
    bars = stream.getvalue().split("\r")
    assert bars == ["", *(f"[{'':40}]   {done}%  {done} of 100 MB" for done in (0, 1, 2))]
    progress.add(98 * MEGABYTE)
    assert stream.getvalue().endswith(f"\r[{'#' * 40}] 100%  100 of 100 MB")
    progress.clear()
    progress.clear()
    assert stream.getvalue().endswith(" MB\r\x1b[K")


def test_elsewhere_it_is_a_line_every_ten_seconds() -> None:
    stream, now_s = io.StringIO(), 0.0
    progress = Progress(TOTAL, stream, lambda: now_s)
    for _ in range(30):
        now_s += LINE_INTERVAL_S / 10
        progress.add(MEGABYTE)
    progress.clear()
    assert stream.getvalue() == " 10%  10 of 100 MB\n 20%  20 of 100 MB\n 30%  30 of 100 MB\n"


def test_small_files_and_a_closed_stream_have_none() -> None:
    stream = Terminal()
    small, unseen, gone = Progress(LARGE - 1, stream), Progress(LARGE, None), Progress(LARGE, Closed())
    for progress in (small, unseen, gone):
        progress.add(LARGE // 2)
        progress.add(LARGE // 4)
        progress.clear()
    assert not stream.getvalue()
