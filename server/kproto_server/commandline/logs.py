"""Print what the broker logs, one line for each event, on standard error."""

from __future__ import annotations

import logging
import sys

from kproto_server.commandline.output import write


class StandardError(logging.Handler):
    """Writes events to standard error; text that clients chose can't control the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one event, and a defect's traceback."""
        line = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in record.getMessage())
        trace = "" if record.exc_info is None else f"\n{logging.Formatter().formatException(record.exc_info)}"
        write(sys.stderr, f"kproto: {line}{trace}\n")


def configure(level: str) -> None:
    """Print the events of the broker from this level on: debug, info, warning or error."""
    log = logging.getLogger("kproto")
    log.handlers[:] = [StandardError()]
    log.setLevel(level.upper())
    log.propagate = False
