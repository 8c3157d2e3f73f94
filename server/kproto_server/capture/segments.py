"""The TCP segment in a packet: link layer, IPv4 or IPv6, TCP."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kproto_server.capture.packet_files import Packet

NULL, ETHERNET, BSD_RAW, RAW, LOOP, LINUX_SLL, IPV4, IPV6, LINUX_SLL2 = 0, 1, 12, 101, 108, 113, 228, 229, 276
LINK_HEADER_BYTES = {
    NULL: 4, ETHERNET: 14, BSD_RAW: 0, 14: 0, RAW: 0, LOOP: 4, LINUX_SLL: 16, IPV4: 0, IPV6: 0, LINUX_SLL2: 20
}  # fmt: skip
"""Link type -> bytes before the IP header, without VLAN tags."""
ETHER_TYPE_POSITIONS = {ETHERNET: 12, LINUX_SLL: 14}
VLAN_TAGS = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")
VLAN_TAG_BYTES = 4
TCP = 6
EXTENSIONS = frozenset({0, 43, 60})
"""Headers of IPv6 between its own and that of TCP: hop-by-hop, routing, destination options."""
FRAGMENT_MASK = 0x3FFF
"""More fragments follow, or the offset is not 0."""
FIN, SYN, RST, ACK = 1, 2, 4, 16

Endpoint = tuple[bytes, int]
"""IP address and port."""


class Segment(NamedTuple):
    """One TCP segment."""

    source: Endpoint
    destination: Endpoint
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes
    missing: int
    """Bytes of the payload, behind those, that were not captured."""


def segment(packet: Packet) -> Segment | None:
    """Return the TCP segment of a packet; None: it has none, or it is a fragment or cut before its payload."""
    try:
        return _segment(packet)
    except IndexError:
        return None


def shown(endpoint: Endpoint) -> str:
    """Return the address and port as text."""
    host = shown_host(endpoint)
    return f"[{host}]:{endpoint[1]}" if ":" in host else f"{host}:{endpoint[1]}"


def shown_host(endpoint: Endpoint) -> str:
    """Return the address as text."""
    return str(ip_address(endpoint[0]))


def _segment(packet: Packet) -> Segment | None:
    data, link_type = packet.data, packet.link_type
    start = LINK_HEADER_BYTES.get(link_type)
    if start is None:
        return None
    type_position = ETHER_TYPE_POSITIONS.get(link_type)
    if type_position is not None:
        while data[type_position : type_position + 2] in VLAN_TAGS:
            type_position += VLAN_TAG_BYTES
            start += VLAN_TAG_BYTES
    version = data[start] >> 4
    if version == 4:
        tcp = start + (data[start] & 15) * 4
        if data[start + 9] != TCP or int.from_bytes(data[start + 6 : start + 8], "big") & FRAGMENT_MASK:
            return None
        size = int.from_bytes(data[start + 2 : start + 4], "big")
        end = start + size if size else packet.length  # 0: the network card splits the packet afterwards
        source, destination = data[start + 12 : start + 16], data[start + 16 : start + 20]
    elif version == 6:
        tcp, kind = start + 40, data[start + 6]
        while kind in EXTENSIONS:
            kind, tcp = data[tcp], tcp + 8 + data[tcp + 1] * 8
        if kind != TCP:
            return None
        size = int.from_bytes(data[start + 4 : start + 6], "big")
        end = start + 40 + size if size else packet.length
        source, destination = data[start + 8 : start + 24], data[start + 24 : start + 40]
    else:
        return None
    payload_start = tcp + (data[tcp + 12] >> 4) * 4
    ports = int.from_bytes(data[tcp : tcp + 4], "big")
    payload = data[payload_start:end]
    return Segment(
        (source, ports >> 16),
        (destination, ports & 0xFFFF),
        int.from_bytes(data[tcp + 4 : tcp + 8], "big"),
        int.from_bytes(data[tcp + 8 : tcp + 12], "big"),
        data[tcp + 13],
        payload,
        max(0, end - payload_start - len(payload)),
    )
