"""Write kproto's own lines to standard output and standard error."""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


PIECE_LENGTH = 400
"""Characters of which each takes ten bytes at most: a pipe that is ready takes 4096 bytes."""


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


def write_unless_blocked(stream: TextIO | None, text: str) -> bool:
    """Write as `write` does, but as much as the reader takes now; return whether that was everything.

    The program that started a broker may never read the pipe of its standard error, which takes a few hundred lines.
    """
    if stream is None:
        return True
    try:
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLOUT)
        for start in range(0, len(text), PIECE_LENGTH):
            if not poll.poll(0):
                return False
            write(stream, text[start : start + PIECE_LENGTH])
    except (OSError, ValueError):  # a stream without a file, or a closed one
        write(stream, text)
    return True


def discard(stream: TextIO) -> None:
    """Discard what could not be written; else Python writes it again when it exits, and reports the error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
