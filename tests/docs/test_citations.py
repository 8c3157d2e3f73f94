"""Every rule, decision and measurement that the repository cites can be looked up in a page of the repository.

Method: regular expressions find the citations of rules (``OC-12``, ``EX-21 row 3``, "GP-10 to GP-18"), decisions
(``D1``), timelines (``T8b``), tables (``A3``) and invariants (``I1``) in all sources, tests and pages. Each must have
an entry in server/RULES.md or server/DESIGN.md. A failure names ``path:line``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from tests.docs.texts import Text, text_of, texts

RULES = "server/RULES.md"
DESIGN = "server/DESIGN.md"

RULE = re.compile(r"\b(OC|OF|EX|GP|BA|LF|OS|CK)-(\d+)(?:\s+to\s+\1-(\d+))?(?:\s+row\s+(\d+))?")
ENTRY = re.compile(r"^### ([A-Z]{2})-(\d+)$", re.M)
ROW = re.compile(r"^\| (\d+) \|", re.M)

CLIENT = ("kproto/client/", "tests/kproto_client/")
NAMED = [
    (DESIGN, re.compile(r"\b(D[1-9]\d?)\b"), re.compile(r"^## (D\d+)$", re.M), ()),
    (RULES, re.compile(r"\b(T[1-9]\d?[a-d]?)\b"), re.compile(r"^\| (T\d+[a-d]?) \|", re.M), CLIENT),
    (RULES, re.compile(r"\b[Tt]ables? (A\d)\b"), re.compile(r"^### Table (A\d):", re.M), ()),
    (RULES, re.compile(r"\b(I[1-9])\b"), re.compile(r"^\| (I\d) \|", re.M), ()),
]
"""Page, citation, entry, and folders where the same letters mean something else: T0 and T1 are times in the client."""

MEASUREMENT = re.compile(r"\bM\[\d")

Rule = tuple[str, int]


def citing_texts() -> Iterator[Text]:
    return (text for text in texts() if text.path != RULES and not text.path.startswith("tests/docs/"))


@cache
def entries() -> dict[Rule, str]:
    """Return the entries of RULES.md: each with its text, up to the next heading."""
    content = text_of(RULES).content
    found = list(ENTRY.finditer(content))
    ends = [match.start() for match in found[1:]] + [len(content)]
    return {(match[1], int(match[2])): content[match.end() : end] for match, end in zip(found, ends, strict=True)}


def test_each_cited_rule_has_an_entry() -> None:
    missing = [
        f"{where}: {match[1]}-{number} has no entry in {RULES}"
        for text in texts()
        for where, match in text.find(RULE)
        for number in match.group(2, 3)
        if number is not None and (match[1], int(number)) not in entries()
    ]
    assert not missing, "\n".join(missing)


def test_each_cited_row_is_in_its_entry() -> None:
    missing = [
        f"{where}: {RULES} has no such row: {match[0]}"
        for text in texts()
        for where, match in text.find(RULE)
        if match[4] is not None and match[4] not in ROW.findall(entries().get((match[1], int(match[2])), ""))
    ]
    assert not missing, "\n".join(missing)


def test_each_entry_is_cited() -> None:
    cited: set[Rule] = set()
    for text in citing_texts():
        for _, match in text.find(RULE):
            first, last = int(match[2]), int(match[3] or match[2])
            cited |= {(match[1], number) for number in range(first, last + 1)}
    uncited = [f"{RULES}: nothing cites {area}-{number}" for area, number in entries() if (area, number) not in cited]
    assert not uncited, "\n".join(uncited)


def test_entries_are_in_order() -> None:
    areas = list(dict.fromkeys(area for area, _ in entries()))
    assert list(entries()) == sorted(entries(), key=lambda rule: (areas.index(rule[0]), rule[1]))
    assert len(ENTRY.findall(text_of(RULES).content)) == len(entries())


def test_each_named_decision_timeline_table_and_invariant_has_an_entry() -> None:
    missing = [
        f"{where}: {match[1]} has no entry in {page}"
        for page, citation, entry, elsewhere in NAMED
        for text in citing_texts()
        if not text.path.startswith(elsewhere)
        for where, match in text.find(citation)
        if match[1] not in entry.findall(text_of(page).content)
    ]
    assert not missing, "\n".join(missing)


def test_measurements_are_cited_in_words() -> None:
    keys = [
        f"{where}: write (measured on 2.0.1 and 2.1.1)"
        for text in citing_texts()
        for where, _ in text.find(MEASUREMENT)
    ]
    assert not keys, "\n".join(keys)
