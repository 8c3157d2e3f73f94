"""The compressions of batches (LF-2): gzip with Python's library, the others with the package cramjam.

Theory of operation. Kafka uses each compression in its own way. Snappy comes in the frame of a Java library (8 bytes of
magic, two int32 versions, then blocks with int32 sizes before them), or without a frame from some clients. LZ4 is the
frame format with rules of its own (`lz4_frame`). The size of the content is not transmitted, so the content is unpacked
into a buffer that grows up to a limit: a few kilobytes on the wire may mean gigabytes.
"""

from __future__ import annotations

import importlib
import zlib
from enum import IntEnum
from typing import TYPE_CHECKING, Any, assert_never

from kproto.errors import ContentTooLarge, DecodeError, MissingPackage
from kproto.framing import FRAME_SIZE_MAX
from kproto.records.lz4_frame import frame_of_magic_0, readable_frame

if TYPE_CHECKING:
    from collections.abc import Callable

CONTENT_SIZE_MAX = FRAME_SIZE_MAX
"""Bytes of the largest content of one batch: the most that a request without compression can carry."""

PACKAGE = "cramjam"
GZIP_WINDOW = 31
"""zlib's ``wbits`` for gzip: a window of 15 bits, plus 16 for gzip's header and trailer."""
GZIP_MEMBER = b"\x1f\x8b\x08"
"""How each member begins."""
GZIP_FLAGS_POSITION, GZIP_FLAGS_MAX = 3, b"\x1f"
"""Java ignores the flags that are reserved, and zlib refuses them."""
FIRST_GUESS = 16
"""Bytes of content for each compressed byte in the first buffer."""
BUFFER_IS_FULL = "failed to write whole buffer"
"""The package's error of bad data with this message says that the buffer is full."""
SNAPPY_FRAME = b"\x82SNAPPY\x00" + bytes.fromhex("00000001 00000001")
SNAPPY_MAGIC = SNAPPY_FRAME[:8]
SNAPPY_BLOCK = 32 * 1024
"""Bytes of content in one block of the Java library."""
FEW_BLOCKS, BYTES_OF_BLOCK = 8, 256
"""The blocks of LZ4 or Snappy, or members of gzip, that any data may have, and the bytes for each further one: a limit
of the work for each byte. Producers write blocks of 32 or 64 KB."""
TOO_MANY_BLOCKS = f"more than {FEW_BLOCKS} blocks and one for each {BYTES_OF_BLOCK} bytes"


class Compression(IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


COMPRESSION_MASK = 7
_BY_NUMBER = tuple(Compression)
"""For each message of a message set: a call of the enumeration takes four times as long."""


def compression_of(attributes: int, path: str, position: int) -> Compression:
    """Return the compression in a batch's attributes; ``path`` and ``position`` are for the error.

    Raises:
        DecodeError: the number is not that of a compression.
    """
    number = attributes & COMPRESSION_MASK
    if number > Compression.ZSTD:
        raise DecodeError(path, position, f"unknown compression {number}")
    return _BY_NUMBER[number]


def compress(compression: Compression, content: bytes, *, magic: int = 2) -> bytes:
    """Return the compressed content, in the format of batches of this magic.

    Raises:
        MissingPackage: the compression needs a package that is not installed.
    """
    match compression:
        case Compression.NONE:
            return content
        case Compression.GZIP:
            packer = zlib.compressobj(wbits=GZIP_WINDOW)
            return packer.compress(content) + packer.flush()
        case Compression.SNAPPY:
            return _snappy_blocks(content)
        case Compression.LZ4:
            frame = _lz4_frame(content)
            return frame_of_magic_0(frame) if magic == 0 else frame
        case Compression.ZSTD:
            return bytes(_package(compression).zstd.compress(content))
        case _:
            assert_never(compression)


def decompress(compression: Compression, data: bytes, *, magic: int = 2, limit: int = CONTENT_SIZE_MAX) -> bytes:
    """Return the uncompressed content.

    Raises:
        ContentTooLarge: more content than the limit.
        DecodeError: the data is not of this compression, is truncated, or has very many small blocks.
        MissingPackage: the compression needs a package that is not installed.
    """
    match compression:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return _gunzip(data, limit)
        case Compression.SNAPPY:
            return _unsnap(data, limit)
        case Compression.LZ4:
            unpack_into = _package(compression).lz4.decompress_into
            frame = readable_frame(data, magic=magic, blocks_max=_blocks_max(data))
            return _unpack(compression, unpack_into, frame, limit)
        case Compression.ZSTD:
            unpack_into = _package(compression).zstd.decompress_into
            return _unpack(compression, unpack_into, data, limit) if data else b""
        case _:
            assert_never(compression)


def _package(compression: Compression) -> Any:
    try:
        return importlib.import_module(PACKAGE)
    except ImportError:
        raise MissingPackage(f"{compression.name.lower()} compression", PACKAGE) from None


def _refuse(compression: Compression, reason: str) -> DecodeError:
    return DecodeError(f"records ({compression.name.lower()})", 0, reason)


def _too_large(compression: Compression, limit: int) -> ContentTooLarge:
    return ContentTooLarge(f"records ({compression.name.lower()})", 0, f"more than {limit} bytes of content")


def _gunzip(data: bytes, limit: int) -> bytes:
    """Unpack the members of a gzip file; as in Java, bytes behind them that begin no further member are ignored."""
    content, position = _gunzip_member(data, 0, len(data), limit, limit)
    if position == len(data):
        return content
    parts, room, size, members_max = [content], limit - len(content), position, _blocks_max(data)
    while data.startswith(GZIP_MEMBER, position):
        if len(parts) == members_max:
            raise _refuse(Compression.GZIP, TOO_MANY_BLOCKS)
        content, end = _gunzip_member(data, position, size, room, limit)
        parts.append(content)
        room -= len(content)
        position, size = end, end - position
    return b"".join(parts)


def _gunzip_member(data: bytes, position: int, size: int, room: int, limit: int) -> tuple[bytes, int]:
    """Unpack the member at a position, with at most ``room`` bytes of content; return it and the position after it.

    zlib gets ``size`` bytes first and more if these do not suffice: it copies what it has been given too much.
    """
    unpacker = zlib.decompressobj(wbits=GZIP_WINDOW)
    parts: list[bytes] = []
    while not unpacker.eof:
        given = data[position : position + size]
        if not given:
            raise _refuse(Compression.GZIP, "truncated")
        if not parts and given[GZIP_FLAGS_POSITION : GZIP_FLAGS_POSITION + 1] > GZIP_FLAGS_MAX:
            flags = given[GZIP_FLAGS_POSITION] & GZIP_FLAGS_MAX[0]
            given = given[:GZIP_FLAGS_POSITION] + bytes((flags,)) + given[GZIP_FLAGS_POSITION + 1 :]
        try:
            parts.append(unpacker.decompress(given, room + 1))
        except zlib.error as error:
            raise _refuse(Compression.GZIP, str(error)) from None
        room -= len(parts[-1])
        if room < 0:
            raise _too_large(Compression.GZIP, limit)
        position += len(given) - len(unpacker.unused_data)
        size *= 2
    return parts[0] if len(parts) == 1 else b"".join(parts), position


def _unpack(compression: Compression, unpack_into: Callable[[bytes, bytearray], int], data: bytes, limit: int) -> bytes:
    """Unpack into buffers of growing size, as the size of the content is not known."""
    size = min(limit, FIRST_GUESS * len(data) + 1024)
    while True:
        buffer = bytearray(size)
        try:
            return bytes(memoryview(buffer)[: unpack_into(data, buffer)])
        except _package(compression).DecompressionError as error:
            if BUFFER_IS_FULL not in str(error):
                raise _refuse(compression, str(error)) from None
            if size == limit:
                raise _too_large(compression, limit) from None
        size = min(limit, size * FIRST_GUESS)


def _unsnap(data: bytes, limit: int) -> bytes:
    """Unpack one frame, or several, as the Java library: up to a truncated size, or a frame of another kind."""
    if not data.startswith(SNAPPY_MAGIC):
        return _unsnap_block(data, limit, limit)
    blocks, position, room, left = [], len(SNAPPY_FRAME), limit, _blocks_max(data)
    while position + 4 <= len(data):
        left -= 1
        if left < 0:
            raise _refuse(Compression.SNAPPY, TOO_MANY_BLOCKS)
        start = position + 4
        end = start + int.from_bytes(data[position:start], "big")
        if end <= len(data):
            blocks.append(_unsnap_block(data[start:end], room, limit))
            room -= len(blocks[-1])
            position = end
        elif not data.startswith(SNAPPY_MAGIC[:4], position):  # which would be the size of a very large block
            raise _refuse(Compression.SNAPPY, "a block is truncated")
        elif position + len(SNAPPY_FRAME) > len(data):
            raise _refuse(Compression.SNAPPY, "a header is truncated")
        elif data.startswith(SNAPPY_MAGIC, position):
            position += len(SNAPPY_FRAME)
        else:
            break
    return b"".join(blocks)


def _blocks_max(data: bytes) -> int:
    return FEW_BLOCKS + len(data) // BYTES_OF_BLOCK


def _unsnap_block(data: bytes, room: int, limit: int) -> bytes:
    """Unpack one block of at most ``room`` bytes of content; the block begins with the size of its content."""
    cramjam = _package(Compression.SNAPPY)
    try:
        if cramjam.snappy.decompress_raw_len(data) > room:
            raise _too_large(Compression.SNAPPY, limit)
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise _refuse(Compression.SNAPPY, str(error)) from None


def _snappy_blocks(content: bytes) -> bytes:
    compress_raw = _package(Compression.SNAPPY).snappy.compress_raw
    parts = [SNAPPY_FRAME]
    for start in range(0, len(content), SNAPPY_BLOCK):
        block = bytes(compress_raw(content[start : start + SNAPPY_BLOCK]))
        parts += len(block).to_bytes(4, "big"), block
    return b"".join(parts)


def _lz4_frame(content: bytes) -> bytes:
    """Return one frame of independent blocks (Kafka reads no others), without a checksum of the content, as Kafka's."""
    packer = _package(Compression.LZ4).lz4.Compressor(content_checksum=False, block_linked=False)
    packer.compress(content)
    return bytes(packer.finish())
