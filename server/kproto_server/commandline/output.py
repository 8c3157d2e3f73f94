"""Write kproto's own lines to standard output and standard error."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def write(stream: TextIO | None, text: str) -> None:
    """Write to a standard stream; ignore a stream that cannot be written.

    A closed pipe, a full disk or a stream that was closed before the start neither ends a broker nor changes the exit
    code of `kproto run`.
    """
    if stream is None:  # Python's value for a standard stream that was closed before the start
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        discard(stream)


def discard(stream: TextIO) -> None:
    """Discard what could not be written; else Python writes it again when it exits, and reports the error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
