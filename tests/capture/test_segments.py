"""TCP segments in packets of each link layer, IPv4 and IPv6, and packets that have none."""

from __future__ import annotations

import struct
from ipaddress import ip_address
from pathlib import Path

import pytest

from kproto_server.capture.packet_files import Packet
from kproto_server.capture.segments import Segment, segment, shown
from kproto_server.capture.writer import CaptureFile, endpoint
from tests.capture.packets import BROKER, CLIENT, RAW_IP, captured

PAYLOAD = b"the payload"


def data_packet(folder: Path) -> bytes:
    (packet,) = [each for each in captured(folder, lambda each: each.sent(PAYLOAD)) if each.data.endswith(PAYLOAD)]
    return packet.data


def found(link_type: int, data: bytes, length: int | None = None) -> Segment | None:
    return segment(Packet(0, link_type, data, len(data) if length is None else length))


@pytest.mark.parametrize(
    ("link_type", "header"),
    [
        (RAW_IP, b""),
        (0, b"\2\0\0\0"),
        (1, bytes(12) + b"\x08\x00"),
        (1, bytes(12) + b"\x81\x00\x00\x05" + b"\x08\x00"),
        (1, bytes(12) + b"\x88\xa8\x00\x05" + b"\x81\x00\x00\x06" + b"\x08\x00"),
        (113, bytes(14) + b"\x08\x00"),
        (276, b"\x08\x00" + bytes(18)),
    ],
    ids=["raw", "loopback", "ethernet", "vlan", "two vlans", "any", "any 2"],
)
def test_each_link_layer_is_read(link_type: int, header: bytes, tmp_path: Path) -> None:
    trailer = bytes(6)  # Ethernet pads short frames
    seen = found(link_type, header + data_packet(tmp_path) + trailer)
    assert seen is not None
    assert (seen.source, seen.destination, seen.payload, seen.missing) == (CLIENT, BROKER, PAYLOAD, 0)


def test_ipv6_is_read_behind_its_extensions(tmp_path: Path) -> None:
    path = tmp_path / "six.pcap"
    file = CaptureFile(str(path))
    file.connection(endpoint("fe80::1%eth0", 1), endpoint("10.0.0.1", 9092)).sent(PAYLOAD)
    file.close()
    packet = path.read_bytes()[-(40 + 20 + len(PAYLOAD)) :]
    size = struct.pack(">H", 20 + len(PAYLOAD) + 8)
    extended = packet[:4] + size + b"\0" + packet[7:40] + b"\6\0" + bytes(6) + packet[40:]
    for data in (packet, extended):
        seen = found(RAW_IP, data)
        assert seen is not None
        assert shown(seen.source) == "[fe80::1]:1"
        assert ip_address(seen.destination[0]) == ip_address("::ffff:10.0.0.1")
        assert seen.payload == PAYLOAD


def test_what_was_not_captured_is_missing(tmp_path: Path) -> None:
    data = data_packet(tmp_path)
    seen = found(RAW_IP, data[:-4], len(data))
    assert seen is not None
    assert (seen.payload, seen.missing) == (PAYLOAD[:-4], 4)


def test_a_packet_of_the_length_zero_reaches_to_its_end(tmp_path: Path) -> None:
    data = data_packet(tmp_path)
    seen = found(RAW_IP, data[:2] + b"\0\0" + data[4:])
    assert seen is not None
    assert seen.payload == PAYLOAD


def test_other_packets_have_no_segment(tmp_path: Path) -> None:
    data = data_packet(tmp_path)
    assert found(RAW_IP, data[:9] + b"\x11" + data[10:]) is None  # UDP
    assert found(RAW_IP, data[:6] + b"\x20\0" + data[8:]) is None  # a fragment
    assert found(1, bytes(12) + b"\x08\x06" + bytes(28)) is None  # ARP
    assert found(147, data) is None  # an unknown link layer
    for end in range(34):  # cut before the flags of TCP
        assert found(RAW_IP, data[:end], len(data)) is None
