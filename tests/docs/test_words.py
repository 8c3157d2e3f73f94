"""The whole tree says things in Kafka's and the field's words; `tests.docs.words` has the list."""

from __future__ import annotations

import pytest

from tests.docs.words import EXCEPTIONS, RULES, SCANNED, all_findings, findings_in


def test_no_line_uses_a_word_that_has_a_better_one() -> None:
    found = [str(finding) for finding in all_findings(list(SCANNED))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("def octet_count() -> int:", "byte"),
        ("class ParkedRequest:", "delayed operation, to delay"),
        ("    # The broker answered.", "response, respond, return, report or log"),
        ("kproto serve --profile 2.0", "Kafka version"),
        ("LOOKOUT_MAX = 3", "busy poll"),
    ],
)
def test_a_word_is_found_in_prose_and_in_identifiers(line: str, instead: str) -> None:
    assert [finding.instead for finding in findings_in("kproto/framing.py", line)] == [instead]


@pytest.mark.parametrize("line", ["memory", "sparkling", "position = stream.tell()", "profiler", "Byte by byte."])
def test_other_words_are_not_found(line: str) -> None:
    assert not findings_in("kproto/framing.py", line)


def test_each_rule_says_what_to_say_and_each_exception_why() -> None:
    assert all(rule.instead for rule in RULES)
    assert all(reason for _, _, reason in EXCEPTIONS)
