"""Compressions: round trips, the details of Kafka's formats, and limits of the content."""

import gzip
import importlib
import zlib
from random import Random
from types import ModuleType

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import ContentTooLarge, DecodeError, MissingPackage
from kproto.records.compression import (
    CONTENT_SIZE_MAX,
    SNAPPY_BLOCK,
    SNAPPY_FRAME,
    Compression,
    compress,
    compression_of,
    decompress,
)
from kproto.records.lz4_frame import END_MARK, MAGIC, header_checksum, short_xxh32

PACKED = [c for c in Compression if c is not Compression.NONE]
FROM_PACKAGE = [Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("magic", [0, 1, 2])
@given(content=st.binary(max_size=400))
def test_decompressed_data_is_the_content(compression: Compression, magic: int, content: bytes) -> None:
    packed = compress(compression, content, magic=magic)
    assert decompress(compression, packed, magic=magic) == content


@pytest.mark.parametrize("compression", PACKED)
@pytest.mark.parametrize("size", [SNAPPY_BLOCK - 1, SNAPPY_BLOCK, 3 * SNAPPY_BLOCK + 1, 1 << 22])
def test_large_content_is_compressed_and_decompressed(compression: Compression, size: int) -> None:
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    packed = compress(compression, content)
    assert len(packed) < size // 4
    assert decompress(compression, packed) == content


@pytest.mark.parametrize("compression", PACKED)
def test_content_of_the_limit_is_unpacked_and_larger_content_is_refused(compression: Compression) -> None:
    packed = compress(compression, bytes(100_000))
    assert decompress(compression, packed, limit=100_000) == bytes(100_000)
    with pytest.raises(DecodeError, match=r"more than 99999|not 99999 bytes or less"):
        decompress(compression, packed, limit=99_999)


def test_the_limit_is_that_of_a_request() -> None:
    assert CONTENT_SIZE_MAX == 100 * 1024 * 1024


@pytest.mark.parametrize("compression", PACKED)
@given(cut=st.floats(0, 0.999))
def test_truncated_data_is_refused_or_has_less_content(compression: Compression, cut: float) -> None:
    """Data that ends between two blocks is valid and has less content; decoding its records then fails."""
    content = zlib.compress(bytes(range(256)) * 40)
    packed = compress(compression, content)
    try:
        found = decompress(compression, packed[: int(cut * len(packed))], limit=10_000)
    except DecodeError:
        return
    assert content.startswith(found)
    assert found != content


@pytest.mark.parametrize("compression", PACKED)
@given(data=st.binary(min_size=1, max_size=60))
def test_random_bytes_raise_only_decode_error(compression: Compression, data: bytes) -> None:
    try:
        found = decompress(compression, data, limit=5000)
    except DecodeError:
        return
    assert len(found) <= 5000


def test_several_members_of_gzip_are_one_content() -> None:
    assert decompress(Compression.GZIP, gzip.compress(b"one, ") + gzip.compress(b"two")) == b"one, two"


def test_a_member_of_gzip_may_be_much_larger_than_the_one_before() -> None:
    """zlib is given more bytes twice: the content comes in three parts."""
    content = Random(1).randbytes(100)  # noqa: S311 - bytes that zlib does not make smaller
    assert decompress(Compression.GZIP, gzip.compress(b"") + gzip.compress(content)) == content


@pytest.mark.parametrize("sizes", [(60, 40), (40, 30, 30)])
def test_the_limit_is_that_of_all_members_of_gzip_together(sizes: tuple[int, ...]) -> None:
    packed = b"".join(gzip.compress(bytes(size)) for size in sizes)
    assert decompress(Compression.GZIP, packed, limit=100) == bytes(100)
    with pytest.raises(ContentTooLarge, match="more than 99 bytes"):
        decompress(Compression.GZIP, packed, limit=99)


def test_bytes_behind_the_members_of_gzip_are_ignored() -> None:
    """As Java does (measured on 2.8.2 and 4.4.0)."""
    packed = compress(Compression.GZIP, b"content")
    for behind in (b"\1\2\3", bytes(16), b"\x1f\x8b"):
        assert decompress(Compression.GZIP, packed + behind) == b"content"
    with pytest.raises(DecodeError):
        decompress(Compression.GZIP, packed + packed[:-1])


@pytest.mark.parametrize(
    "many",
    [
        compress(Compression.GZIP, b"") * 1000,
        SNAPPY_FRAME + b"\0\0\0\1\0" * 1000,
        SNAPPY_FRAME * 1000,
        compress(Compression.LZ4, b"")[:7] + b"\1\0\0\x80k" * 1000 + END_MARK,
    ],
    ids=["members of gzip", "blocks of Snappy", "frames of Snappy", "blocks of LZ4"],
)
def test_many_small_blocks_are_refused(many: bytes) -> None:
    """200,000 of them fit in a request of 1 MB, and took 320 ms."""
    compression = {0x1F: Compression.GZIP, 0x82: Compression.SNAPPY, 0x04: Compression.LZ4}[many[0]]
    with pytest.raises(DecodeError, match=r"more than .* blocks"):
        decompress(compression, many)


@pytest.mark.parametrize("size", [7, 100_000])
def test_reserved_flags_of_gzip_are_ignored(size: int) -> None:
    """Measured on 1.1.1, 2.8.2 and 4.4.0."""
    content = Random(1).randbytes(size)  # noqa: S311 - bytes that zlib does not make smaller
    packed = bytearray(compress(Compression.GZIP, content))
    packed[3] |= 0xE0
    assert decompress(Compression.GZIP, bytes(packed) * 2) == content * 2
    packed[3] |= 4  # "extra fields", which it does not have
    with pytest.raises(DecodeError):
        decompress(Compression.GZIP, bytes(packed))


@pytest.mark.parametrize("size", [300, 1000, 5000])
def test_twice_as_many_members_of_gzip_are_twice_the_work(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is the bytes that zlib is given, which it may have to copy."""
    given: list[int] = []
    make_unpacker = zlib.decompressobj

    class Counted:
        def __init__(self, wbits: int) -> None:
            self._unpacker = make_unpacker(wbits=wbits)

        def decompress(self, data: bytes, max_length: int) -> bytes:
            given.append(len(data))
            return self._unpacker.decompress(data, max_length)

        eof = property(lambda self: self._unpacker.eof)
        unused_data = property(lambda self: self._unpacker.unused_data)

    content = Random(1).randbytes(size)  # noqa: S311 - bytes that zlib does not make smaller
    packed = compress(Compression.GZIP, content)
    with monkeypatch.context() as patch:
        patch.setattr(zlib, "decompressobj", Counted)
        work = []
        for count in (500, 1000):
            given.clear()
            assert decompress(Compression.GZIP, packed * count) == content * count
            work.append(sum(given))
    assert work[1] < 2.1 * work[0]


def test_python_reads_gzip() -> None:
    assert gzip.decompress(compress(Compression.GZIP, b"content")) == b"content"


def test_snappy_without_javas_frame_is_read() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(b"content"))) == b"content"


def test_snappy_is_written_in_javas_frame() -> None:
    content = bytes(SNAPPY_BLOCK + 1)
    packed = compress(Compression.SNAPPY, content)
    assert packed.startswith(bytes.fromhex("82534e41505059 00 00000001 00000001"))
    first = int.from_bytes(packed[16:20], "big")
    assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + first]) == SNAPPY_BLOCK
    assert compress(Compression.SNAPPY, b"") == SNAPPY_FRAME


def test_a_block_of_snappy_that_ends_after_the_data_is_refused() -> None:
    """Also if the bytes before the end of the data are a whole block."""
    block = bytes(cramjam.snappy.compress_raw(b"content"))
    good = SNAPPY_FRAME + len(block).to_bytes(4, "big") + block
    assert decompress(Compression.SNAPPY, good) == b"content"
    assert decompress(Compression.SNAPPY, good + bytes(3)) == b"content"
    for behind in (bytes(4), (len(block) + 1).to_bytes(4, "big") + block):
        with pytest.raises(DecodeError):
            decompress(Compression.SNAPPY, good + behind)


def test_frames_of_snappy_behind_the_first_are_read() -> None:
    """Measured on 1.1.1, 2.8.2 and 4.4.0."""
    one, two = (compress(Compression.SNAPPY, content) for content in (b"one, ", b"two"))
    assert decompress(Compression.SNAPPY, one + two) == b"one, two"
    assert decompress(Compression.SNAPPY, one + SNAPPY_FRAME[:7] + b"\1" + two) == b"one, "
    with pytest.raises(DecodeError, match="a header is truncated"):
        decompress(Compression.SNAPPY, one + SNAPPY_FRAME[:15])
    with pytest.raises(ContentTooLarge):
        decompress(Compression.SNAPPY, one + two, limit=7)


def test_lz4_blocks_are_independent() -> None:
    """Version 1, independent blocks, no size or checksum of the content: Kafka refuses other frames."""
    assert compress(Compression.LZ4, b"content")[4] & 0b11101101 == 0b01100000


def test_lz4_of_magic_0_has_the_checksum_of_header_and_magic_number() -> None:
    good, broken = (compress(Compression.LZ4, b"content", magic=magic) for magic in (2, 0))
    assert good[:6] == broken[:6]
    assert good[7:] == broken[7:]
    assert broken[6] == short_xxh32(broken[:6]) >> 8 & 0xFF
    assert good[6] == short_xxh32(good[4:6]) >> 8 & 0xFF
    with pytest.raises(DecodeError):
        decompress(Compression.LZ4, broken, limit=1000)
    assert decompress(Compression.LZ4, good, magic=0) == b"content"


CONTENT = b"content" * 9


def lz4_frame(flags: int = 0x60, sizes: int = 0x40, more: bytes = b"", *, behind: bytes = b"", block: int = 0) -> bytes:
    """Return a frame of one block that is not compressed; ``block``: the size that it says."""
    header = bytes((flags, sizes)) + more
    size = 0x8000_0000 | (block or len(CONTENT))
    start = MAGIC + header + bytes((header_checksum(header),))
    return start + size.to_bytes(4, "little") + CONTENT + END_MARK + behind


@pytest.mark.parametrize(
    "frame",
    [
        lz4_frame(),
        lz4_frame(0x64, behind=b"\1\2\3\4"),
        lz4_frame(0x68, more=(1).to_bytes(8, "little")),
        lz4_frame(behind=b"no frame"),
        lz4_frame(behind=lz4_frame()),
        lz4_frame(sizes=0x70),
    ],
    ids=["plain", "wrong checksum of the content", "wrong size of the content", "bytes behind", "twice", "4 MB blocks"],
)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_frames_of_lz4_that_kafka_reads(frame: bytes, magic: int) -> None:
    """Measured in batches of magic 2 on 1.1.1, 2.8.2 and 4.4.0."""
    assert decompress(Compression.LZ4, frame, magic=magic) == CONTENT


def test_a_block_of_lz4_may_have_the_size_of_the_header() -> None:
    content = bytes(65_536)
    assert decompress(Compression.LZ4, lz4_frame(block=len(content)).replace(CONTENT, content)) == content


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (bytes(cramjam.lz4.compress(CONTENT)), "not a frame of version 1 with independent blocks"),
        (lz4_frame(0x61, more=bytes(4)), "without a dictionary"),
        (lz4_frame(0x62), "not a frame"),
        (lz4_frame(0xA0), "not a frame of version 1"),
        (lz4_frame(sizes=0x41), "size of blocks"),
        (lz4_frame(sizes=0x30), "size of blocks"),
        (lz4_frame(sizes=0xC0), "size of blocks"),
        (b"\x50\x2a\x4d\x18" + bytes(4) + lz4_frame(), "not an LZ4 frame"),
        (lz4_frame(block=65_537), "a block of 65537 bytes, more than 65536"),
        (lz4_frame(block=len(CONTENT) + 1), "truncated"),
        (lz4_frame()[:-4], "truncated"),
        (lz4_frame(0x64), "truncated"),
        (lz4_frame(0x68), "more than 65536"),
    ],
)
@pytest.mark.parametrize("magic", [0, 2])
def test_frames_of_lz4_that_kafka_refuses(frame: bytes, reason: str, magic: int) -> None:
    """Linked blocks are the default of many libraries (measured in batches of magic 2 on 1.1.1, 2.8.2 and 4.4.0)."""
    with pytest.raises(DecodeError, match=reason):
        decompress(Compression.LZ4, frame, magic=magic, limit=1000)


@pytest.mark.parametrize("flags", [0x60, 0x64])
def test_the_checksum_of_an_lz4_header_is_compared(flags: int) -> None:
    frame = bytearray(lz4_frame(flags, behind=bytes(4 if flags & 4 else 0)))
    frame[6] ^= 1
    with pytest.raises(DecodeError):
        decompress(Compression.LZ4, bytes(frame), limit=1000)
    assert decompress(Compression.LZ4, bytes(frame), magic=0) == CONTENT


def test_checksums_of_lz4_blocks_are_compared() -> None:
    content = b"a short block"
    header, size = bytes((0x70, 0x40)), 0x8000_0000 | len(content)
    for checksum, is_read in ((short_xxh32(content), True), (short_xxh32(content) ^ 1, False)):
        block = size.to_bytes(4, "little") + content + checksum.to_bytes(4, "little")
        frame = MAGIC + header + bytes((header_checksum(header),)) + block + END_MARK
        if is_read:
            assert decompress(Compression.LZ4, frame) == content
        else:
            with pytest.raises(DecodeError):
                decompress(Compression.LZ4, frame, limit=1000)


def test_no_frame_of_zstd_is_no_content() -> None:
    """Measured on 2.8.2 and 4.4.0."""
    assert decompress(Compression.ZSTD, b"") == b""


@pytest.mark.parametrize("data", [b"", b"\x04\x22\x4d\x18", b"not a frame"])
def test_lz4_of_magic_0_without_a_frame_header_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="not an LZ4 frame"):
        decompress(Compression.LZ4, data, magic=0)


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"abcd", 0xA3643705),
        (b"Nobody inspects", 0x9759CD1A),
    ],
)
def test_xxh32_vectors(data: bytes, digest: int) -> None:
    assert len(data) < 16
    assert short_xxh32(data) == digest


@pytest.mark.parametrize("compression", FROM_PACKAGE)
def test_a_missing_package_is_named(compression: Compression, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = compress(compression, b"content")

    def importing(name: str) -> ModuleType:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(importlib, "import_module", importing)
    message = f"{compression.name.lower()} compression needs the package cramjam"
    with pytest.raises(MissingPackage, match=message):
        compress(compression, b"content")
    with pytest.raises(MissingPackage, match=message):
        decompress(compression, packed)


def test_gzip_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(importlib, "import_module")
    assert decompress(Compression.GZIP, compress(Compression.GZIP, b"content")) == b"content"


@pytest.mark.parametrize("attributes", [5, 6, 7, 0x55])
def test_other_compressions_are_refused(attributes: int) -> None:
    with pytest.raises(DecodeError, match=f"unknown compression {attributes & 7}"):
        compression_of(attributes, "here", 0)
    assert compression_of(attributes & ~7 | 3, "here", 0) is Compression.LZ4
