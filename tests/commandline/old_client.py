"""A client from before ApiVersions: it sends ListOffsets v0 and Metadata v0 and prints the number of responses."""

import os
import socket
import struct

from kproto.messages.k02_list_offsets import ListOffsetsRequest
from kproto.messages.k03_metadata import MetadataRequest

CLIENT_ID = b"consumer-1"


def frame(api_key: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api_key, 0, 7, len(CLIENT_ID)) + CLIENT_ID
    return struct.pack(">i", len(header) + len(body)) + header + body


def has_response(connection: socket.socket, request: bytes) -> bool:
    connection.sendall(request)
    with connection.makefile("rb") as stream:
        size = int.from_bytes(stream.read(4), "big")
        return len(stream.read(size)) == size > 0


host, _, port = os.environ["KAFKA_BOOTSTRAP_SERVERS"].rpartition(":")
with socket.create_connection((host, int(port))) as connection:
    requests = (
        frame(2, ListOffsetsRequest(replica_id=-1, topics=()).encode(0)),
        frame(3, MetadataRequest(topics=()).encode(0)),
    )
    print(sum(has_response(connection, request) for request in requests))
