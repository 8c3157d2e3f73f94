"""Numbers in the text of configs, as brokers in Java read and describe them."""

from __future__ import annotations

import pytest

from kproto.jvm.doubles import double_text, parse_double
from kproto.jvm.text import trimmed


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("0.0001", "1.0E-4"),
        ("1e-5", "1.0E-5"),
        ("0.5d", "0.5"),
        ("0.5f", "0.5"),
        ("NaN", "NaN"),
        ("0x1p-1", "0.5"),
        ("1e0001", "10.0"),
        ("00.5", "0.5"),
        (".5", "0.5"),
        ("5.e-1", "0.5"),
        ("0.001", "0.001"),
        ("0.123456789012345678", "0.12345678901234568"),
        ("1d", "1.0"),
        ("1", "1.0"),
    ],
)
def test_a_broker_describes_the_number_so(text: str, described: str) -> None:
    """`min.cleanable.dirty.ratio` of a topic, as 2.8.2 and 4.4.0 take and describe it."""
    number = parse_double(text)
    assert number is not None
    assert double_text(number) == described


@pytest.mark.parametrize(
    "text", ["", "x", ".", "e5", "0x1", "0x.p1", "1_0", "+-1", "\u0665", "1e", "nan", "inf", "1dd"]
)
def test_other_texts_are_no_numbers(text: str) -> None:
    assert parse_double(text) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [(1e7, "1.0E7"), (-1.25e-10, "-1.25E-10"), (123456789.0, "1.23456789E8"), (-0.0, "-0.0"), (9999999.0, "9999999.0")],
)
def test_numbers_are_written_as_java_writes_them(number: float, text: str) -> None:
    assert double_text(number) == text


@pytest.mark.parametrize("text", ["1e999999999", "0x1p999999999", "9" * 400])
def test_a_number_too_large_is_infinite(text: str) -> None:
    assert [parse_double(text), parse_double("-" + text)] == [float("inf"), float("-inf")]
    assert [double_text(float("inf")), double_text(float("-inf"))] == ["Infinity", "-Infinity"]


def test_blanks_are_those_of_java() -> None:
    """A broker takes "\\0" before a number for a blank, and no-break spaces for letters."""
    assert trimmed("\0\t 5 \x1f\n") == "5"
    assert trimmed("\xa05\u2003") == "\xa05\u2003"
