"""The few requests that benches send themselves, written out by hand: they cost the same whoever answers, and nothing
of what is measured is imported for them."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from struct import pack, unpack_from

from bench.peers.server import HOST

API_VERSIONS = 18
OFFSET_FETCH = 9
OFFSET_FETCH_VERSION = 5
ANSWER_SECONDS_MAX = 30.0
CLIENT_ID = "bench"
NOT_YET = frozenset((14, 15, 16))
"""Error codes of a coordinator that is on its way: it loads, is not available, is not this broker."""


class Refused(Exception):
    """An answer with an error code."""

    def __init__(self, error_code: int) -> None:
        super().__init__(f"error code {error_code}")
        self.error_code = error_code


def connect(port: int) -> socket.socket:
    stream = socket.create_connection((HOST, port), ANSWER_SECONDS_MAX)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def text(value: str) -> bytes:
    data = value.encode()
    return pack(">h", len(data)) + data


def ask(stream: socket.socket, api_key: int, api_version: int, body: bytes) -> bytes:
    """The body of the answer, after its correlation id."""
    head = pack(">hhi", api_key, api_version, 1) + text(CLIENT_ID)
    stream.sendall(pack(">i", len(head) + len(body)) + head + body)
    (size,) = unpack_from(">i", _read(stream, 4))
    return _read(stream, size)[4:]


def committed(stream: socket.socket, group_id: str, topics: Sequence[str], partition_count: int) -> list[int]:
    """The committed offsets of the topics' first partitions, in their order; -1 where there is none.

    Raises:
        Refused: the group's coordinator is still loading, or something else is wrong.
    """
    partitions = pack(f">i{partition_count}i", partition_count, *range(partition_count))
    body = text(group_id) + pack(">i", len(topics)) + b"".join(text(topic) + partitions for topic in topics)
    answer = ask(stream, OFFSET_FETCH, OFFSET_FETCH_VERSION, body)
    if error_code := unpack_from(">h", answer, len(answer) - 2)[0]:
        raise Refused(error_code)
    found: dict[str, list[int]] = {}
    topic_count, position = unpack_from(">i", answer, 4)[0], 8
    for _ in range(topic_count):
        (size,) = unpack_from(">h", answer, position)
        name = answer[position + 2 : position + 2 + size].decode()
        (count,) = unpack_from(">i", answer, position + 2 + size)
        position += 6 + size
        offsets = found.setdefault(name, [-1] * count)
        for _ in range(count):
            index, offset, _leader_epoch, metadata_size = unpack_from(">iqih", answer, position)
            position += 18 + max(metadata_size, 0)
            (error_code,) = unpack_from(">h", answer, position)
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
