"""Read the packets of a pcap or pcapng file, one at a time.

No library reads them here: dpkt does not return the length of a packet that was captured in part, and knows one
interface of a pcapng file; Scapy has a license that does not fit.

Disk:
    pcap: a header of 24 bytes, then for each packet 16 bytes (seconds, fraction, captured length, length) and the
    captured bytes. The magic number shows the byte order and whether the fraction has microseconds or nanoseconds.
    pcapng: blocks with type, length, body, and the length again. Section headers have the byte order, interface
    descriptions the link type and the resolution of times.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html and draft-ietf-opsawg-pcapng-02.html.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import KprotoError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

MAGIC_BYTES = 4
SECTION_HEADER = b"\x0a\x0d\x0d\x0a"
PCAP_FORMATS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""Magic number -> byte order, and nanoseconds of the fraction's unit."""
PCAP_HEADER_BYTES = 24
PACKET_SIZE_MAX = 16 * 1024 * 1024
"""Bytes of a packet, or of a block of pcapng: Wireshark's limit is 256 KiB for a packet."""

INTERFACE, OBSOLETE_PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 1, 2, 3, 6
TIME_RESOLUTION = 9
"""Option of an interface description: if_tsresol."""
MICROSECOND_NS = 1000
SECOND_NS = 1_000_000_000
LINK_TYPE_MASK = 0x0FFF_FFFF
"""The upper bits have the length of a checksum behind each packet."""


class BadCapture(KprotoError):
    """A file is no capture, or is damaged; the text is one clause for the user."""


class Packet(NamedTuple):
    """One packet."""

    time_ns: int
    """Since 1970."""
    link_type: int
    data: bytes
    length: int
    """Bytes that the packet had; ``data`` may have fewer."""


def is_capture(beginning: bytes) -> bool:
    """Return whether a file that begins so is a pcap or pcapng file."""
    magic = beginning[:MAGIC_BYTES]
    return magic == SECTION_HEADER or magic in PCAP_FORMATS


def packets(stream: BinaryIO) -> Iterator[Packet]:
    """Yield the packets of a file; one that is cut at its end is left out, as a capture that goes on has it.

    Raises:
        BadCapture: the file is no capture, or its structure is damaged.
    """
    magic = stream.read(MAGIC_BYTES)
    if magic == SECTION_HEADER:
        return _of_pcapng(stream)
    if magic in PCAP_FORMATS:
        return _of_pcap(stream, *PCAP_FORMATS[magic])
    raise BadCapture("no pcap or pcapng file")


def _of_pcap(stream: BinaryIO, order: str, unit_ns: int) -> Iterator[Packet]:
    header = stream.read(PCAP_HEADER_BYTES - MAGIC_BYTES)
    if len(header) < PCAP_HEADER_BYTES - MAGIC_BYTES:
        raise BadCapture("the header of the file is cut")
    link_type = struct.unpack_from(order + "I", header, 16)[0] & LINK_TYPE_MASK
    record = struct.Struct(order + "IIII")
    while len(head := stream.read(record.size)) == record.size:
        seconds, fraction, captured, length = record.unpack(head)
        if captured > PACKET_SIZE_MAX:
            raise BadCapture(f"a packet of {captured:,} bytes")
        data = stream.read(captured)
        if len(data) < captured:
            return
        yield Packet(seconds * SECOND_NS + fraction * unit_ns, link_type, data, length)


class _Interface(NamedTuple):
    link_type: int
    captured_max: int
    """Bytes that are captured of a packet; 0: all."""
    unit_ns: float


def _of_pcapng(stream: BinaryIO) -> Iterator[Packet]:
    order, interfaces = "<", list[_Interface]()
    kind_bytes = SECTION_HEADER
    while len(kind_bytes) == MAGIC_BYTES:
        if kind_bytes == SECTION_HEADER:
            head = stream.read(8)
            if len(head) < 8:
                return
            order = "<" if head[4:8] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
            size = struct.unpack_from(order + "I", head)[0] - 12
            kind = 0
        else:
            kind = struct.unpack(order + "I", kind_bytes)[0]
            head = stream.read(4)
            if len(head) < 4:
                return
            size = struct.unpack(order + "I", head)[0] - 8
        if not 4 <= size <= PACKET_SIZE_MAX:
            raise BadCapture(f"a block of {size + 8:,} bytes")
        body = stream.read(size)
        if len(body) < size:
            return
        try:
            if kind == INTERFACE:
                interfaces.append(_interface(body, order))
            elif kind in (ENHANCED_PACKET, OBSOLETE_PACKET, SIMPLE_PACKET):
                yield _packet(kind, body, order, interfaces)
        except (struct.error, IndexError):
            raise BadCapture("a block with a malformed content") from None
        kind_bytes = stream.read(MAGIC_BYTES)


def _interface(body: bytes, order: str) -> _Interface:
    link_type, _, captured_max = struct.unpack_from(order + "HHI", body)
    unit_ns: float = MICROSECOND_NS
    position = 8
    while position + 4 <= len(body) - 4:
        code, size = struct.unpack_from(order + "HH", body, position)
        if code == TIME_RESOLUTION and size:
            value = body[position + 4]
            unit_ns = SECOND_NS / (2 ** (value & 0x7F) if value & 0x80 else 10**value)
        position += 4 + size + -size % 4
    return _Interface(link_type, captured_max, unit_ns)


def _packet(kind: int, body: bytes, order: str, interfaces: list[_Interface]) -> Packet:
    if kind == SIMPLE_PACKET:
        (length,) = struct.unpack_from(order + "I", body)
        interface = interfaces[0]
        captured = min(length, interface.captured_max or length)
        return Packet(0, interface.link_type, body[4 : 4 + captured], length)
    numbers = "IIIII" if kind == ENHANCED_PACKET else "HHIIII"
    found = struct.unpack_from(order + numbers, body)
    interface = interfaces[found[0]]
    upper, lower, captured, length = found[-4:]
    return Packet(int((upper << 32 | lower) * interface.unit_ns), interface.link_type, body[20 : 20 + captured], length)
