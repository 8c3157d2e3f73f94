"""The frame of LZ4 as Kafka reads it (LF-2).

Kafka reads frames of version 1 with independent blocks and without a dictionary. It checks the checksums of the header
and of the blocks, and reads up to the end mark: neither the size nor the checksum of the content is compared, and bytes
behind the frame are ignored. In message sets of magic 0 the checksum of the header covers 4 bytes too many when Kafka
writes it, and is not checked.

Source:
    Produce responses of 1.1.1, 2.8.2 and 4.4.0 to batches with such frames.
"""

from __future__ import annotations

from kproto.errors import DecodeError

MAGIC = bytes.fromhex("04224d18")
END_MARK = bytes(4)
FIXED_FLAGS, FIXED_FLAGS_MASK = 0b0110_0000, 0b1110_0011
"""Version 1, independent blocks, no dictionary, and a reserved bit."""
BLOCK_CHECKSUM, CONTENT_SIZE, CONTENT_CHECKSUM = 16, 8, 4
"""Flags."""
HEADER_SIZE = 7
"""Magic, flags, size of blocks, checksum; the size of the content adds 8 bytes."""
SIZE_MASK = 0x7FFFFFFF
"""The highest bit of a block's size says that the block is not compressed."""


def readable_frame(data: bytes, *, magic: int, blocks_max: int) -> bytes:
    """Return a frame with what Kafka reads of one in a batch of this magic, for a decoder that checks all there is.

    The checksum of the header may be left to the decoder.

    Raises:
        DecodeError: the data does not begin with a frame that Kafka reads, is truncated, or has more blocks.
    """
    if len(data) < HEADER_SIZE or not data.startswith(MAGIC):
        raise _refusal(0, "not an LZ4 frame")
    flags, block_code = data[4], data[5]
    if flags & FIXED_FLAGS_MASK != FIXED_FLAGS:
        raise _refusal(4, "not a frame of version 1 with independent blocks and without a dictionary")
    if block_code & 0b1000_1111 or block_code < 0b0100_0000:
        raise _refusal(5, "an unknown size of blocks")
    start = HEADER_SIZE + (8 if flags & CONTENT_SIZE else 0)
    checksum_size = 4 if flags & BLOCK_CHECKSUM else 0
    end = _end_of_blocks(data, start, 1 << (8 + (block_code >> 4) * 2), checksum_size, blocks_max)
    behind = end + 4 + (4 if flags & CONTENT_CHECKSUM else 0)
    if behind > len(data):
        raise _refusal(end, "truncated")
    is_plain = behind == len(data) and data.endswith(END_MARK)
    if magic and not flags & (CONTENT_SIZE | CONTENT_CHECKSUM) and is_plain:
        return data
    if magic and data[start - 1] != header_checksum(data[4 : start - 1]):
        raise _refusal(start - 1, "a wrong checksum of the header")
    header = bytes((flags & ~(CONTENT_SIZE | CONTENT_CHECKSUM), block_code))
    return b"".join((MAGIC, header, bytes((header_checksum(header),)), data[start:end], END_MARK))


def _end_of_blocks(data: bytes, position: int, size_max: int, checksum_size: int, blocks_max: int) -> int:
    """Return the position of the end mark."""
    for _ in range(blocks_max + 1):
        if position + 4 > len(data):
            raise _refusal(len(data), "truncated")
        size = int.from_bytes(data[position : position + 4], "little") & SIZE_MASK
        if not size:
            return position
        if size > size_max:
            raise _refusal(position, f"a block of {size} bytes, more than {size_max}")
        position += 4 + size + checksum_size
    raise _refusal(position, f"more than {blocks_max} blocks")


def frame_of_magic_0(frame: bytes) -> bytes:
    """Return a frame without the size of its content with the checksum that Kafka writes in magic 0."""
    covered = frame[: HEADER_SIZE - 1]
    return covered + bytes((header_checksum(covered),)) + frame[HEADER_SIZE:]


def _refusal(position: int, reason: str) -> DecodeError:
    return DecodeError("records (lz4)", position, reason)


def header_checksum(covered: bytes) -> int:
    """Return the second byte of xxHash32, for the 2 to 14 bytes that the checksum of a header covers."""
    return short_xxh32(covered) >> 8 & 0xFF


PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


def short_xxh32(data: bytes) -> int:
    """Return xxHash32 with seed 0 of at most 15 bytes."""
    assert len(data) < 16, "longer data is hashed in stripes, which LZ4 headers never need"
    value = PRIME_5 + len(data)
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        value = value + int.from_bytes(data[start : start + 4], "little") * PRIME_3 & 0xFFFFFFFF
        value = _rotated(value, 17) * PRIME_4 & 0xFFFFFFFF
    for byte in data[whole:]:
        value = value + byte * PRIME_5 & 0xFFFFFFFF
        value = _rotated(value, 11) * PRIME_1 & 0xFFFFFFFF
    value = (value ^ value >> 15) * PRIME_2 & 0xFFFFFFFF
    value = (value ^ value >> 13) * PRIME_3 & 0xFFFFFFFF
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF
