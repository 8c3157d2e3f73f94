"""Memory and cost of an audit do not grow with the size of its files.

Method. Limits are small. Recorded files are repeated with further client ids and hosts, and the memory blocks that
Python holds are counted while the audit reads them.
"""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from bench.audit import log_pieces, pcap_pieces
from kproto_server.audit import request_log
from kproto_server.audit.sources import Sources
from kproto_server.capture import streams
from kproto_server.observation import observe
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo

LIMITS = (
    (request_log, "CONNECTIONS_MAX"),
    (streams, "CONNECTIONS_MAX"),
    (observe, "CLIENT_IDS_MAX"),
    (observe, "SHARED_ROWS_MAX"),
    (observe, "ORIGINS_MAX"),
)
LIMIT = 20
GROWTH_MAX = 2000
"""Blocks of memory; connections that are not forgotten hold 16,000 to 22,000."""
FIN_ACK, ACK = b"\x50\x11", b"\x50\x10"
"""Size of the header of TCP, and flags, of a segment that ends a connection, and of one that does not."""


def read_logs(sources: Sources, pieces: Iterator[bytes]) -> None:
    for copy in islice(pieces, 25):
        for line in copy.splitlines(keepends=True):
            sources.log.read(line)


def captures() -> Iterator[bytes]:
    """Yield each recorded capture again and again; its connections do not end."""
    pieces = pcap_pieces()
    header = next(pieces)
    while True:
        yield header + b"".join(
            piece.replace(FIN_ACK, ACK, 1) if len(piece) == 16 + 40 else piece for piece in islice(pieces, 2500)
        )


def read_captures(sources: Sources, pieces: Iterator[bytes]) -> None:
    sources.captured.connections.read(io.BytesIO(next(pieces)))


@pytest.mark.parametrize(
    ("pieces", "read"),
    [(lambda: log_pieces("2.0.1"), read_logs), (lambda: log_pieces("4.4.0"), read_logs), (captures, read_captures)],
    ids=["text", "JSON", "capture"],
)
def test_what_is_held_does_not_grow(
    pieces: Callable[[], Iterator[bytes]],
    read: Callable[[Sources, Iterator[bytes]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, name in LIMITS:
        monkeypatch.setattr(module, name, LIMIT)
    sources, content = Sources(), pieces()

    def held() -> int:
        read(sources, content)
        gc.collect()
        return sys.getallocatedblocks()

    held()
    first = held()
    held()
    assert held() < first + GROWTH_MAX


def test_a_snapshot_reads_each_table_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(values: object) -> list[object]:
        found = sorted(values)  # type: ignore[call-overload]  # of anything
        sizes.append(len(found))
        return found  # type: ignore[no-any-return]

    monkeypatch.setattr(observe, "sorted", counted, raising=False)

    def sorted_rows(client_count: int) -> int:
        observations = Observations()
        info = ConnectionInfo("/127.0.0.1")
        for nth in range(client_count):
            for key in range(5):
                observations.request(info, f"client-{nth}", key, 0)
        sizes.clear()
        assert len(observations.snapshot().clients) == client_count
        return sum(sizes)

    assert sorted_rows(200) < 2.1 * sorted_rows(100)
