"""Captures as bytes: what clients and brokers send, written by `CaptureFile`."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path

from kproto_server.capture.packet_files import Packet, packets
from kproto_server.capture.writer import CapturedConnection, CaptureFile, endpoint

CLIENT, BROKER = endpoint("10.0.0.7", 40_000), endpoint("10.0.0.1", 9092)
RAW_IP = 101


def captured(folder: Path, *write: Callable[[CapturedConnection], object]) -> list[Packet]:
    """Return the packets of connections from CLIENT's port on, of each of which a function writes the content."""
    path = folder / "written.pcap"
    file = CaptureFile(str(path))
    for number, each in enumerate(write):
        connection = file.connection((CLIENT[0], CLIENT[1] + number), BROKER)
        each(connection)
        connection.closed(by_broker=False)
    file.close()
    with path.open("rb") as stream:
        return list(packets(stream))


def pcap(found: list[Packet], *, order: str = "<", magic: int = 0xA1B2C3D4, captured_max: int = 1 << 18) -> bytes:
    """Return a pcap file of these packets; ``captured_max``: bytes of each that it keeps."""
    unit_ns = 1000 if magic == 0xA1B2C3D4 else 1
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, captured_max, found[0].link_type)]
    for packet in found:
        data = packet.data[:captured_max]
        seconds, rest_ns = divmod(packet.time_ns, 10**9)
        parts += [struct.pack(order + "IIII", seconds, rest_ns // unit_ns, len(data), packet.length), data]
    return b"".join(parts)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """Return a block of pcapng."""
    padded = body + bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(padded) + 12)
    return struct.pack(order + "I", kind) + size + padded + size


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link_type: int, order: str = "<", options: bytes = b"") -> bytes:
    return block(1, struct.pack(order + "HHI", link_type, 0, 0) + options, order)


def enhanced(number: int, units: int, data: bytes, order: str = "<", length: int | None = None) -> bytes:
    size = len(data) if length is None else length
    head = struct.pack(order + "IIIII", number, units >> 32, units & 0xFFFF_FFFF, len(data), size)
    return block(6, head + data, order)


def read(data: bytes) -> list[Packet]:
    return list(packets(io.BytesIO(data)))
