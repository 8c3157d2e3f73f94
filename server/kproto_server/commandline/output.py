"""What kproto itself says on standard output and standard error."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def tell(stream: TextIO | None, text: str) -> None:
    """Write to a standard stream, as far as there is somebody who takes it.

    A pipe whose reader has gone, a full disk or a stream that was closed from the start is no reason to end a broker,
    or to end otherwise than the command of `kproto run` did.
    """
    if stream is None:  # Python's word for a standard stream that was closed before it started
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # else Python tries the rest once more at its end, and complains
        os.close(nowhere)
