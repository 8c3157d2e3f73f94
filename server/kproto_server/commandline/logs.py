"""Print what the broker logs, one line for each event, on standard error."""

from __future__ import annotations

import logging
import sys

from kproto_server.commandline.output import write_unless_blocked


class StandardError(logging.Handler):
    """Writes events to standard error; text that clients chose can't control the terminal.

    The broker never waits for the reader of standard error: lines are dropped meanwhile, and counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._dropped_count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one event, and a defect's traceback."""
        line = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in record.getMessage())
        trace = "" if record.exc_info is None else f"\n{logging.Formatter().formatException(record.exc_info)}"
        text = f"kproto: {line}{trace}\n"
        if self._dropped_count:
            text = f"kproto: {self._dropped_count} lines were dropped while standard error was not read\n{text}"
        self._dropped_count = 0 if write_unless_blocked(sys.stderr, text) else self._dropped_count + 1


def configure(level: str) -> None:
    """Print the events of the broker from this level on: debug, info, warning or error."""
    log = logging.getLogger("kproto")
    log.handlers[:] = [StandardError()]
    log.setLevel(level.upper())
    log.propagate = False
