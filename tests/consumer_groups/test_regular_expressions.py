"""Regular expressions of subscriptions: RE2's syntax, and matches of whole topic names in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto_server.coordinator.regular_expression import InvalidRegex, Regex

INVALID = {
    "(": "missing closing )",
    "a)": "regexp/syntax: internal error",
    "a**": "invalid nested repetition operator",
    "a{1}{2}": "invalid nested repetition operator",
    "*": "missing argument to repetition operator",
    "{1}": "missing argument to repetition operator",
    "a{1001}": "invalid repeat count",
    "a{2,1}": "invalid repeat count",
    "\\1": "invalid escape sequence",
    "\\C": "invalid escape sequence",
    "\\Z": "invalid escape sequence",
    "\\x{110000}": "invalid escape sequence",
    "\\": "trailing backslash at end of expression",
    "(?=a)": "invalid or unsupported Perl syntax",
    "(?>a)": "invalid or unsupported Perl syntax",
    "(?i": "invalid or unsupported Perl syntax",
    "(?<=a)": "invalid named capture",
    "(?P<1-2>t)": "invalid named capture",
    "(?P<né>a)": "invalid named capture",
    "(?P<n>t": "missing closing )",
    "(?P<n>a)(?<n>b)": "duplicate capture group name",
    "[z-a]": "invalid character class range",
    "[[:foo:]]": "invalid character class range",
    "\\p{Klingon}": "invalid character class range",
    "[a": "missing closing ]",
}
"""Expressions, and the descriptions in the error messages of Kafka 4.4.0."""
VALID = (
    ("t|w", "t w", "tw x"),
    ("", "", "a"),
    ("a.c", "abc a.c", "ac abbc"),
    ("a{2,3}", "aa aaa", "a aaaa"),
    ("a{2,}b?", "aa aaaab", "ab"),
    ("(?:ab)*c", "c ababc", "abac"),
    ("(?i)Ab", "ab AB aB", "a"),
    ("(?i:a)B", "aB AB", "ab"),
    ("(?P<name>x)(y)", "xy", "x"),
    ("[^a-c]", "d -", "a b"),
    ("[]a-]", "a -", "b"),
    ("[[:digit:]_]+", "1_2", "a"),
    ("\\d\\D\\w\\W", "1a_.", "aa_."),
    ("\\Qa.b\\E", "a.b", "axb"),
    ("^a$|\\Ab\\z", "a b", "ab"),
    ("a$b|^", "", "ab a"),
    ("a\\b.b", "a.b a-b", "aab"),
    ("a\\Bb", "ab", "a-b"),
    ("\\x61\\x{62}\\143", "abc", "aBc"),
    ("\\pL\\p{Lu}\\PN\\p{^Lu}", "aBcd", "aBcD 1Bcd"),
    ("\\p{Latin}+\\p{Greek}?", "abc", "a1"),
    ("x*?y+?z??", "y xyz", "x"),
    ("a|b|", "a b", "c"),
    ("[\\d-z]", "1 - z", "a"),
    ("(?<name>x)", "x", "y"),
)


@pytest.mark.parametrize("text", INVALID)
def test_invalid_expressions_are_described_in_the_words_of_kafka(text: str) -> None:
    with pytest.raises(InvalidRegex) as raised:
        Regex(text)
    assert str(raised.value) == INVALID[text]


@pytest.mark.parametrize(("text", "matching", "others"), VALID)
def test_whole_names_match(text: str, matching: str, others: str) -> None:
    regex = Regex(text)
    assert [name for name in (matching.split() or [""]) if not regex.matches(name)] == (
        [""] if text in ("a{,2}", "a{b") else []
    )
    assert [name for name in others.split() if regex.matches(name)] == []


def test_a_brace_that_is_no_count_is_a_literal() -> None:
    """Topic names have no braces."""
    assert not any(Regex(text).matches(name) for text in ("a{,2}", "a{b", "a{") for name in ("", "a", "aa", "ab"))


SIMPLE = st.recursive(
    st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]", "\\w", "^", "$", "\\b"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}"])).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
    ),
    max_leaves=8,
)


@given(SIMPLE, st.lists(st.text("ab-._1", max_size=6), max_size=8))
def test_matches_are_those_of_python(text: str, names: list[str]) -> None:
    """Python's expressions have the same meaning where both have a construct."""
    regex, other = Regex(text), re.compile(text)
    assert [regex.matches(name) for name in names] == [other.fullmatch(name) is not None for name in names]


def test_no_expression_takes_long() -> None:
    """Python needs 2^30 steps for this one."""
    assert not Regex("(a*)*(a+)+c").matches("a" * 30 + "b")


@pytest.mark.parametrize(
    ("text", "description"),
    [("(a{100}){100}", "invalid repeat count"), ("(" + "a" * 1000 + "){1000}", "expression too large")],
)
def test_large_expressions_are_refused(text: str, description: str) -> None:
    """DEVIATION: Kafka 4.4.0 accepts both."""
    with pytest.raises(InvalidRegex, match=description):
        Regex(text)
