"""The progress line, with a clock of the test."""

from __future__ import annotations

import io

import pytest

from kproto.client import (
    CatchUpDone,
    CatchUpProgress,
    CatchUpStarted,
    CatchUpStopped,
    CheckpointDeleted,
    OffsetRange,
    ProgressLine,
    StopReason,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Display:
    """A progress line, its stream and its clock."""

    def __init__(self, stream: io.StringIO) -> None:
        self.now_s = 0.0
        self.stream = stream
        self.line = ProgressLine(stream, lambda: self.now_s)

    def printed(self) -> str:
        """Return what was printed since the last call."""
        text = self.stream.getvalue()
        self.stream.seek(0)
        self.stream.truncate()
        return text


def started(partition: int = 0, records: int = 2_000) -> CatchUpStarted:
    ranges = (OffsetRange(0, records),)
    return CatchUpStarted(
        topic="orders", partition=partition, ranges=ranges, consumer1_start=records, records_left=records
    )


def progress(left: int, per_s: float, partition: int = 0) -> CatchUpProgress:
    return CatchUpProgress(
        topic="orders", partition=partition, ranges=(), records_left=left, records_per_s=per_s, seconds_left=None
    )


def done(partition: int = 0) -> CatchUpDone:
    return CatchUpDone(topic="orders", partition=partition, offset=2_000, records=2_000, duration_s=1.0)


def stopped(left: int, partition: int = 0) -> CatchUpStopped:
    return CatchUpStopped(topic="orders", partition=partition, offset=0, records_left=left, reason=StopReason.REVOKED)


def test_a_terminal_has_one_line_that_is_refreshed() -> None:
    display = Display(Terminal())
    display.line(started())
    assert display.printed() == "\r\x1b[Kcatching up [--------------------]   0%  2,000 records left, 0/s, waiting"
    display.now_s = 1.0
    display.line(started(1))
    assert "  4,000 records left" in display.printed()
    display.now_s = 1.4
    display.line(progress(1_000, 500.0))
    assert display.printed() == ""
    display.now_s = 1.5
    display.line(progress(1_000, 500.0, partition=1))
    expected = "\r\x1b[Kcatching up [##########----------]  50%  2,000 records left, 1,000/s, 0:00:02 left"
    assert display.printed() == expected
    display.now_s = 90.0
    display.line(done())
    assert "  1,000 records left, 500/s, 0:00:02 left" in display.printed()
    display.line(done(1))
    assert display.printed() == "\r\x1b[Kcaught up with 4,000 records in 0:01:30\n"


def test_elsewhere_there_is_a_line_every_ten_seconds() -> None:
    display = Display(io.StringIO())
    display.line(started(records=20_000))
    assert display.printed() == "catching up [--------------------]   0%  20,000 records left, 0/s, waiting\n"
    lines = ""
    for second in range(1, 21):
        display.now_s = float(second)
        display.line(progress(20_000 - 500 * second, 500.0))
        lines += display.printed()
    assert lines == (
        "catching up [#####---------------]  25%  15,000 records left, 500/s, 0:00:30 left\n"
        "catching up [##########----------]  50%  10,000 records left, 500/s, 0:00:20 left\n"
    )
    display.line(done())
    assert display.printed() == "caught up with 20,000 records in 0:00:20\n"


def test_partitions_that_are_revoked_end_the_line() -> None:
    display = Display(io.StringIO())
    display.line(started())
    display.line(started(1))
    display.printed()
    display.line(stopped(1_500))
    display.line(stopped(2_000, partition=1))
    assert display.printed() == "stopped after 500 records in 0:00:00\n"
    display.line(stopped(2_000, partition=1))
    display.line(progress(10, 1.0))
    display.line(CheckpointDeleted(topic="orders", partition=0, number=0))
    assert display.printed() == ""
    display.line(started())
    assert display.printed().startswith("catching up")


def test_the_standard_error_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLine()(started())
    assert capsys.readouterr().err.startswith("catching up")
