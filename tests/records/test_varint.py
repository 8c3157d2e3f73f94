"""Signed varints: vectors, the construct declaration, and hostile bytes."""

import io
from collections.abc import Callable

import pytest
from construct import ConstructError
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import DecodeError, EncodeError
from kproto.records.record_construct import VARINT, VARLONG, SignedVarint
from kproto.records.varint import read_varint, read_varlong, varint, varlong

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

VECTORS = {
    0: "00", -1: "01", 1: "02", -2: "03", 63: "7e", -64: "7f", 64: "8001", -65: "8101", 8191: "fe7f", -8192: "ff7f",
    8192: "808001", 1048575: "feff7f", 134217727: "feffff7f", 2**31 - 1: "feffffff0f", -(2**31): "ffffffff0f",
}  # fmt: skip
LONG_VECTORS = VECTORS | {2**63 - 1: "feffffffffffffffff01", -(2**63): "ffffffffffffffffff01", 2**31: "8080808010"}


@pytest.mark.parametrize(("number", "encoded"), VECTORS.items())
def test_varint_vectors(number: int, encoded: str) -> None:
    assert varint(number).hex() == encoded
    assert read_varint(bytes.fromhex(encoded), 0) == (number, len(encoded) // 2)


@pytest.mark.parametrize(("number", "encoded"), LONG_VECTORS.items())
def test_varlong_vectors(number: int, encoded: str) -> None:
    assert varlong(number).hex() == encoded
    assert read_varlong(bytes.fromhex(encoded), 0) == (number, len(encoded) // 2)


@given(INT32, st.binary(max_size=3), st.binary(max_size=3))
def test_varints_are_read_at_any_position(number: int, before: bytes, after: bytes) -> None:
    encoded = varint(number)
    assert read_varint(before + encoded + after, len(before)) == (number, len(before + encoded))


@given(INT64, st.binary(max_size=3))
def test_varlongs_are_read_at_any_position(number: int, before: bytes) -> None:
    encoded = varlong(number)
    assert read_varlong(before + encoded, len(before)) == (number, len(before + encoded))


@given(st.binary(max_size=12))
def test_any_bytes_give_the_same_result_as_the_declaration(encoded: bytes) -> None:
    readers: list[tuple[Callable[[bytes, int], tuple[int, int]], SignedVarint]]
    readers = [(read_varint, VARINT), (read_varlong, VARLONG)]
    for read, declared in readers:
        stream = io.BytesIO(encoded)
        try:
            expected = declared.parse_stream(stream)
        except ConstructError:
            with pytest.raises(DecodeError):
                read(encoded, 0)
        else:
            assert read(encoded, 0) == (expected, stream.tell())


@pytest.mark.parametrize("encoded", ["", "80", "ffffffff", "ffffffff1f", "ffffffffff01", "ff" * 20])
def test_a_truncated_or_too_long_varint_is_refused(encoded: str) -> None:
    with pytest.raises(DecodeError, match="varint at byte 0: truncated, or of more than 32 bits"):
        read_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["", "80", "ff" * 9, "ff" * 9 + "02", "ff" * 10 + "01", "ff" * 20])
def test_a_truncated_or_too_long_varlong_is_refused(encoded: str) -> None:
    with pytest.raises(DecodeError, match="varlong at byte 0: truncated, or of more than 64 bits"):
        read_varlong(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_a_number_of_more_than_32_bits_is_refused(number: int) -> None:
    with pytest.raises(EncodeError, match="is not an int32"):
        varint(number)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_a_number_of_more_than_64_bits_is_refused(number: int) -> None:
    with pytest.raises(EncodeError, match="is not an int64"):
        varlong(number)


@pytest.mark.parametrize(("declared", "number"), [(VARINT, 2**31), (VARLONG, 2**63)])
def test_the_declaration_refuses_the_same_numbers(declared: SignedVarint, number: int) -> None:
    assert declared.parse(declared.build(number - 1)) == number - 1
    with pytest.raises(ConstructError, match="is not an int"):
        declared.build(number)
