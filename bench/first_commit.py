"""The smallest client that commits an offset: Metadata, FindCoordinator, OffsetCommit v3.

Each request is repeated until it succeeds.
"""

from __future__ import annotations

import socket
from struct import pack, unpack_from
from time import monotonic, sleep

from bench.model import BenchError
from bench.wire import ask, connect

PAUSE_SECONDS = 0.0003
PATIENCE_SECONDS = 60.0
TOPIC = b"first"
GROUP = b"first-group"
METADATA = (3, 4, pack(">ih", 1, len(TOPIC)) + TOPIC + b"\1")
FIND_COORDINATOR = (10, 0, pack(">h", len(GROUP)) + GROUP)
OFFSET_COMMIT = (
    8,
    3,
    pack(">h", len(GROUP)) + GROUP + pack(">ihqih", -1, 0, -1, 1, len(TOPIC)) + TOPIC + pack(">iiqh", 1, 0, 42, 0),
)


def first_commit(port: int) -> None:
    """Return after the first successful response to a commit.

    Raises:
        BenchError: no commit succeeded within `PATIENCE_SECONDS`.
    """
    end = monotonic() + PATIENCE_SECONDS
    while monotonic() < end:
        try:
            with connect(port) as stream:
                if _commit(stream, end):
                    return
        except (ConnectionError, TimeoutError):
            sleep(PAUSE_SECONDS)
    raise BenchError(f"no commit succeeded on port {port} within {PATIENCE_SECONDS:g} s")


def _commit(stream: socket.socket, end: float) -> bool:
    for request, succeeded in ((METADATA, _has_leader), (FIND_COORDINATOR, _found), (OFFSET_COMMIT, _committed)):
        while not succeeded(ask(stream, *request)):
            if monotonic() > end:
                return False
            sleep(PAUSE_SECONDS)
    return True


def _has_leader(metadata: bytes) -> bool:
    """Return whether Metadata v4 has the topic without an error, and a leader of its first partition."""
    position = metadata.find(pack(">h", len(TOPIC)) + TOPIC)
    if position < 2:
        return False
    (error_code,) = unpack_from(">h", metadata, position - 2)
    position += 2 + len(TOPIC) + 1
    (count,) = unpack_from(">i", metadata, position)
    return error_code == 0 and count > 0 and bool(unpack_from(">hii", metadata, position + 4)[2] >= 0)


def _found(response: bytes) -> bool:
    return bool(unpack_from(">h", response)[0] == 0)


def _committed(response: bytes) -> bool:
    """Return whether the only partition of OffsetCommit v3 has no error."""
    return response[-2:] == b"\0\0"
