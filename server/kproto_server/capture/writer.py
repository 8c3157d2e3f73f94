"""Write a capture: what `kproto proxy` relays, as TCP between client and broker, in a pcap file.

Each read of the proxy becomes segments of the client or of the broker with a handshake before and FIN behind them.
Checksums of TCP are 0, as in a capture of packets whose network card computes them.
"""

from __future__ import annotations

import struct
import time
from ipaddress import ip_address
from typing import TYPE_CHECKING

from kproto.output_file import opened_private
from kproto_server.capture.segments import ACK, FIN, RAW, SYN, TCP

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedWriter

    from kproto_server.capture.segments import Endpoint

HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, RAW)
"""Magic number of nanoseconds, version, time zone, accuracy, bytes that are captured of a packet, link type."""
PAYLOAD_MAX = 65_000
"""Bytes of a segment: with its headers it has less than the 65,535 of an IP packet."""
PUSH = 8
WINDOW = 65_535
TTL = 64
FIRST_SEQUENCE = 1000
TCP_HEADER_BYTES = 20
SECOND_NS = 1_000_000_000


def endpoint(address: str, port: int) -> Endpoint:
    """Return the end of a connection; ``address`` is numeric, and may have the scope of an IPv6 address."""
    return ip_address(address.partition("%")[0]).packed, port


class CaptureFile:
    """A pcap file that grows; only its owner may read it, because it has records and passwords.

    Raises:
        OSError: the file cannot be made; each method, too: it cannot be written.
    """

    def __init__(self, path: str, now_ns: Callable[[], int] = time.time_ns) -> None:
        """Begin the file.

        Args:
            path: a file that exists is replaced.
            now_ns: returns the time of packets for which none is given.
        """
        self.now_ns: Callable[[], int] = now_ns
        self._file: BufferedWriter = open(path, "wb", opener=opened_private)  # noqa: SIM115 (`close` closes it)
        self._file.write(HEADER)
        self.flush()

    def connection(self, client: Endpoint, broker: Endpoint) -> CapturedConnection:
        """Return a new connection."""
        return CapturedConnection(self, client, broker)

    def packet(self, packet: bytes, time_ns: int) -> None:
        """Write a packet of IP."""
        size = len(packet)
        self._file.write(struct.pack("<IIII", *divmod(time_ns, SECOND_NS), size, size))
        self._file.write(packet)

    def flush(self) -> None:
        """Let readers see what was written so far."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class CapturedConnection:
    """One connection of a `CaptureFile`: its methods write its packets, in the order of their calls."""

    def __init__(self, file: CaptureFile, client: Endpoint, broker: Endpoint) -> None:
        self._file = file
        if len(client[0]) != len(broker[0]):  # one has IPv4, the other IPv6
            client, broker = _mapped(client), _mapped(broker)
        self._ends = (client, broker)
        self._next = [FIRST_SEQUENCE, FIRST_SEQUENCE]
        self._packet(0, SYN, b"", None)
        self._packet(1, SYN | ACK, b"", None)
        self._packet(0, ACK, b"", None)

    def sent(self, data: bytes, time_ns: int | None = None) -> None:
        """Write what the client sent; without a time, now."""
        self._data(0, data, time_ns)

    def received(self, data: bytes, time_ns: int | None = None) -> None:
        """Write what the broker sent; without a time, now."""
        self._data(1, data, time_ns)

    def closed(self, *, by_broker: bool) -> None:
        """Write the end."""
        first = int(by_broker)
        self._packet(first, FIN | ACK, b"", None)
        self._packet(1 - first, FIN | ACK, b"", None)
        self._packet(first, ACK, b"", None)

    def _data(self, side: int, data: bytes, time_ns: int | None) -> None:
        for at in range(0, len(data), PAYLOAD_MAX):
            self._packet(side, ACK | PUSH, data[at : at + PAYLOAD_MAX], time_ns)

    def _packet(self, side: int, flags: int, payload: bytes, time_ns: int | None) -> None:
        (source, source_port), (destination, destination_port) = self._ends[side], self._ends[1 - side]
        acknowledged = self._next[1 - side] if flags & ACK else 0
        tcp = struct.pack(
            ">HHIIBBHHH", source_port, destination_port, self._next[side], acknowledged, TCP_HEADER_BYTES // 4 << 4,
            flags, WINDOW, 0, 0,
        )  # fmt: skip
        self._next[side] = (self._next[side] + len(payload) + bool(flags & (SYN | FIN))) % (1 << 32)
        size = TCP_HEADER_BYTES + len(payload)
        if len(source) == 4:
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + size, 0, 0x4000, TTL, TCP, 0, source, destination)
            ip = ip[:10] + _checksum(ip) + ip[12:]
        else:
            ip = struct.pack(">IHBB16s16s", 6 << 28, size, TCP, TTL, source, destination)
        self._file.packet(ip + tcp + payload, self._file.now_ns() if time_ns is None else time_ns)


def _mapped(end: Endpoint) -> Endpoint:
    """Return an IPv4 address as IPv6."""
    return (end[0] if len(end[0]) == 16 else b"\0" * 10 + b"\xff\xff" + end[0]), end[1]


def _checksum(header: bytes) -> bytes:
    total: int = sum(struct.unpack(">10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (~total & 0xFFFF).to_bytes(2, "big")
