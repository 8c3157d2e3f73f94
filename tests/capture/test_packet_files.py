"""pcap and pcapng files: each form of them is read, and damaged ones are errors."""

from __future__ import annotations

import struct

import pytest

from kproto_server.capture.packet_files import BadCapture, Packet, is_capture
from tests.capture.packets import RAW_IP, block, enhanced, interface, pcap, read, section

TIME_NS = 1_700_000_000_123_456_000
PACKET = Packet(TIME_NS, RAW_IP, b"E packet", 8)
ETHERNET = 1


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_pcap_has_two_byte_orders_and_two_units_of_time(order: str, magic: int) -> None:
    data = pcap([PACKET, PACKET], order=order, magic=magic)
    assert is_capture(data)
    assert read(data) == [PACKET, PACKET]


def test_a_packet_has_its_length_even_if_it_was_captured_in_part() -> None:
    assert read(pcap([PACKET], captured_max=3)) == [PACKET._replace(data=b"E p")]


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_has_interfaces_of_different_link_types_and_times(order: str) -> None:
    nanoseconds = struct.pack(order + "HHB3x", 9, 1, 9) + bytes(4)
    halves = struct.pack(order + "HHB3x", 9, 1, 0x81)
    data = (
        section(order)
        + interface(ETHERNET, order)
        + interface(RAW_IP, order, nanoseconds)
        + interface(RAW_IP, order, halves)
        + block(5, b"statistics", order)
        + enhanced(0, TIME_NS // 1000, b"first", order)
        + enhanced(1, TIME_NS, b"second", order, length=100)
        + enhanced(2, 3, b"third", order)
    )
    assert is_capture(data)
    assert read(data) == [
        Packet(TIME_NS, ETHERNET, b"first", 5),
        Packet(TIME_NS, RAW_IP, b"second", 100),
        Packet(1_500_000_000, RAW_IP, b"third", 5),
    ]


def test_each_section_of_pcapng_has_its_own_byte_order_and_interfaces() -> None:
    first = section("<") + interface(ETHERNET, "<") + enhanced(0, 1, b"first", "<")
    second = section(">") + interface(RAW_IP, ">") + enhanced(0, 1, b"second", ">")
    assert [(packet.link_type, packet.data) for packet in read(first + second)] == [
        (ETHERNET, b"first"),
        (RAW_IP, b"second"),
    ]


def test_simple_and_obsolete_packets_are_read() -> None:
    obsolete = block(2, struct.pack("<HHIIII", 0, 0, 0, 7, 3, 9) + b"abc")
    data = section() + interface(RAW_IP) + block(3, struct.pack("<I", 4) + b"wxyz") + obsolete
    assert read(data) == [Packet(0, RAW_IP, b"wxyz", 4), Packet(7000, RAW_IP, b"abc", 9)]


@pytest.mark.parametrize("data", [pcap([PACKET] * 2), section() + interface(RAW_IP) + enhanced(0, 1, b"first") * 2])
def test_a_capture_that_is_cut_has_its_whole_packets(data: bytes) -> None:
    whole = read(data)
    header_bytes = 24 if data[:1] == b"\xd4" else len(section())
    for end in range(header_bytes, len(data)):
        found = read(data[:end])
        assert found == whole[: len(found)]
    assert len(found) == 1


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "no pcap or pcapng file"),
        (b"[2026-11-23] INFO", "no pcap or pcapng file"),
        (pcap([PACKET])[:20], "the header of the file is cut"),
        (pcap([PACKET])[:24] + struct.pack("<IIII", 0, 0, 1 << 30, 1 << 30), "a packet of 1,073,741,824 bytes"),
        (section() + struct.pack("<II", 6, 1 << 31), "a block of 2,147,483,648 bytes"),
        (section() + struct.pack("<II", 6, 0), "a block of 0 bytes"),
        (section() + enhanced(0, 1, b"no interface"), "a block with a malformed content"),
        (section() + interface(RAW_IP) + block(6, b"short"), "a block with a malformed content"),
    ],
)
def test_a_damaged_capture_is_an_error(data: bytes, error: str) -> None:
    with pytest.raises(BadCapture, match=error):
        read(data)
