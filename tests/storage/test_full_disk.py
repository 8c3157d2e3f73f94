"""A broker process on a real file system of a few megabytes that fills up.

Clients get Kafka's error (OC-35), and nothing else changes for them. Commits succeed again once there is space.
Acknowledged commits are there after SIGKILL and a restart, although the disk was full in between.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from struct import pack, unpack_from
from time import monotonic, sleep

import pytest

from bench.peers.durability import ON_DISK, Durability
from bench.peers.server import Launch, Server, wait_until_listening
from bench.wire import NOT_YET, Refused, ask, committed, connect, text
from kproto.codes import ErrorCode
from tests.storage.small_disk import SmallDisk, small_disk

MEGABYTE = 1 << 20
DISK_BYTES: dict[Durability, int] = {"os": 6 * MEGABYTE, "fsync": 96 * MEGABYTE}
"""``fsync`` reserves 2 x 16 MiB for the write-ahead log."""
TOPIC = "orders"
PARTITIONS = 3
GROUP = "billing"
METADATA, OFFSET_COMMIT, FIND_COORDINATOR, API_VERSIONS = 3, 8, 10, 18
LOADING_MAX_S = 30.0
COMMITS_MAX = 20_000
"""More than fit into the last blocks of the open files when the disk is full."""


@pytest.fixture(params=ON_DISK)
def durability(request: pytest.FixtureRequest) -> Durability:
    value: Durability = request.param
    return value


@pytest.fixture
def disk(tmp_path: Path, durability: Durability) -> Iterator[SmallDisk]:
    with small_disk(tmp_path, DISK_BYTES[durability]) as mounted:
        yield mounted


@pytest.fixture
def launch(disk: SmallDisk, durability: Durability) -> Launch:
    serve = [sys.executable, "-m", "kproto_server", "serve", "--port", "0", "--set", f"num.partitions={PARTITIONS}"]
    data = ["--data-dir", str(disk.directory / "data"), "--durability", durability]
    return Launch(version="", argv=disk.command([*serve, *data]))


def commit(stream: socket.socket, number: int) -> int:
    """Commit the same offset for all partitions; return the error code, which must be the same for all."""
    partitions = b"".join(pack(">iqh", index, number, 0) for index in range(PARTITIONS))
    body = text(GROUP) + pack(">ihq", -1, 0, -1) + pack(">i", 1) + text(TOPIC) + pack(">i", PARTITIONS) + partitions
    response = ask(stream, OFFSET_COMMIT, 3, body)
    codes = {unpack_from(">h", response, len(response) - 6 * nth - 2)[0] for nth in range(PARTITIONS)}
    assert len(codes) == 1
    return int(codes.pop())


def offsets(stream: socket.socket) -> list[int]:
    return committed(stream, GROUP, [TOPIC], PARTITIONS)


def offsets_once_loaded(stream: socket.socket) -> list[int]:
    end = monotonic() + LOADING_MAX_S
    while True:
        try:
            return offsets(stream)
        except Refused as refused:
            if refused.error_code not in NOT_YET or monotonic() > end:
                raise
        sleep(0.005)


@pytest.mark.slow  # a real process, started twice
def test_clients_get_an_error_on_a_full_disk_and_commits_succeed_again(disk: SmallDisk, launch: Launch) -> None:
    server = Server(launch)
    try:
        wait_until_listening(server)
        with connect(server.port) as stream:
            acknowledged = _fill(disk, stream)
            assert commit(stream, acknowledged + 1) == ErrorCode.NOT_COORDINATOR, "there is no space"
            assert offsets(stream) == [acknowledged] * PARTITIONS, "a failed commit changes nothing visible (OC-36)"
            assert ask(stream, API_VERSIONS, 0, b"")[:2] == b"\0\0"
            server.check()
            disk.release()
            assert commit(stream, acknowledged + 2) == 0
            assert offsets(stream) == [acknowledged + 2] * PARTITIONS
            disk.fill()
            acknowledged = _commit_until_refused(stream, acknowledged + 3)
    finally:
        server.kill()
    _check_after_restart(disk, launch, acknowledged)


def _fill(disk: SmallDisk, stream: socket.socket) -> int:
    """Create the topic, commit, take all space; return the last acknowledged number."""
    ask(stream, METADATA, 4, pack(">i", 1) + text(TOPIC) + b"\1")
    ask(stream, FIND_COORDINATOR, 0, text(GROUP))
    assert commit(stream, 1) == 0
    disk.fill()
    return _commit_until_refused(stream, 2)


def _commit_until_refused(stream: socket.socket, number: int) -> int:
    """Commit until the last block is full, too; return the last acknowledged number."""
    for committing in range(number, number + COMMITS_MAX):
        error_code = commit(stream, committing)
        if error_code:
            assert error_code == ErrorCode.NOT_COORDINATOR
            return committing - 1
    pytest.fail(f"{COMMITS_MAX} commits succeeded on a full disk")


def _check_after_restart(disk: SmallDisk, launch: Launch, acknowledged: int) -> None:
    """Check the last acknowledged number, first on the full disk, and that commits succeed with space."""
    server = Server(launch)
    try:
        wait_until_listening(server)
        with connect(server.port) as stream:
            assert offsets_once_loaded(stream) == [acknowledged] * PARTITIONS
            disk.release()
            assert commit(stream, acknowledged + 5) == 0
            assert offsets(stream) == [acknowledged + 5] * PARTITIONS
    finally:
        server.stop()
