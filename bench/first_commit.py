"""A client that does the least for one commit: Metadata, FindCoordinator, OffsetCommit v3.

Each is repeated until it succeeds.
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
    """Return once a commit was answered without an error.

    Raises:
        BenchError: that took longer than anything measured here should.
    """
    end = monotonic() + PATIENCE_SECONDS
    while monotonic() < end:
        try:
            with connect(port) as stream:
                if _commit(stream, end):
                    return
        except (ConnectionError, TimeoutError):
            sleep(PAUSE_SECONDS)
    raise BenchError(f"no commit was answered on port {port} in {PATIENCE_SECONDS:g} s")


def _commit(stream: socket.socket, end: float) -> bool:
    for request, succeeded in (
        (METADATA, _has_leader),
        (FIND_COORDINATOR, _found),
        (OFFSET_COMMIT, _committed),
    ):
        while not succeeded(ask(stream, *request)):
            if monotonic() > end:
                return False
            sleep(PAUSE_SECONDS)
    return True


def _has_leader(metadata: bytes) -> bool:
    """Whether Metadata v4 names the topic without an error, and its first partition a leader."""
    position = metadata.find(pack(">h", len(TOPIC)) + TOPIC)
    if position < 2:
        return False
    (error_code,) = unpack_from(">h", metadata, position - 2)
    position += 2 + len(TOPIC) + 1
    (count,) = unpack_from(">i", metadata, position)
    return error_code == 0 and count > 0 and bool(unpack_from(">hii", metadata, position + 4)[2] >= 0)


def _found(answer: bytes) -> bool:
    return bool(unpack_from(">h", answer)[0] == 0)


def _committed(answer: bytes) -> bool:
    """Whether OffsetCommit v3's only partition has no error."""
    return answer[-2:] == b"\0\0"
