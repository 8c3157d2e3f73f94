"""The few requests that benches send themselves, encoded by hand.

They cost the same for every server, and they import nothing that is measured.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from struct import pack, unpack_from

from bench.peers.server import HOST

API_VERSIONS = 18
OFFSET_FETCH = 9
OFFSET_FETCH_VERSION = 5
RESPONSE_SECONDS_MAX = 30.0
CLIENT_ID = "bench"
NOT_YET = frozenset((14, 15, 16))
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: a coordinator is starting."""


class Refused(Exception):
    """A response has an error code."""

    def __init__(self, error_code: int) -> None:
        super().__init__(f"error code {error_code}")
        self.error_code = error_code


def connect(port: int) -> socket.socket:
    stream = socket.create_connection((HOST, port), RESPONSE_SECONDS_MAX)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def text(value: str) -> bytes:
    data = value.encode()
    return pack(">h", len(data)) + data


def ask(stream: socket.socket, api_key: int, api_version: int, body: bytes) -> bytes:
    """Send a request; return the body of the response, after its correlation id."""
    head = pack(">hhi", api_key, api_version, 1) + text(CLIENT_ID)
    stream.sendall(pack(">i", len(head) + len(body)) + head + body)
    (size,) = unpack_from(">i", _read(stream, 4))
    return _read(stream, size)[4:]


def committed(stream: socket.socket, group_id: str, topics: Sequence[str], partition_count: int) -> list[int]:
    """Return the committed offsets of the topics' first partitions, in their order; -1 for none.

    Raises:
        Refused: the response has an error, for example while the group's coordinator loads.
    """
    partitions = pack(f">i{partition_count}i", partition_count, *range(partition_count))
    body = text(group_id) + pack(">i", len(topics)) + b"".join(text(topic) + partitions for topic in topics)
    response = ask(stream, OFFSET_FETCH, OFFSET_FETCH_VERSION, body)
    if error_code := unpack_from(">h", response, len(response) - 2)[0]:
        raise Refused(error_code)
    found: dict[str, list[int]] = {}
    topic_count, position = unpack_from(">i", response, 4)[0], 8
    for _ in range(topic_count):
        (size,) = unpack_from(">h", response, position)
        name = response[position + 2 : position + 2 + size].decode()
        (count,) = unpack_from(">i", response, position + 2 + size)
        position += 6 + size
        offsets = found.setdefault(name, [-1] * count)
        for _ in range(count):
            index, offset, _leader_epoch, metadata_size = unpack_from(">iqih", response, position)
            position += 18 + max(metadata_size, 0)
            (error_code,) = unpack_from(">h", response, position)
            position += 2
            if error_code:
                raise Refused(error_code)
            offsets[index] = offset
    return [offset for topic in topics for offset in found[topic]]


def _read(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = stream.recv(size - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data
