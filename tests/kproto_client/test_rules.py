"""Each rule of the specification of KIP-842 and KIP-333 (CK-1 to CK-92) is cited by a test."""

import re
from pathlib import Path

RULES = [
    *range(1, 7),  # settings
    *range(10, 17),  # missing offset, invalid offset, group start
    *range(20, 25),  # table A3
    *range(30, 37),  # table A4
    *range(50, 56),  # consumers 1 and 2
    *range(60, 68),  # buffers and delivery order
    *range(70, 77),  # commits
    *range(80, 88),  # repeated crashes
    *range(90, 93),  # model test, worked example, speed
]
CITED = re.compile(r"\bCK-(\d+)\b(?! to CK)(?<!to CK-\d\d)")
"""A single rule: a range of rules (CK-1 to CK-6) cites none of them."""


def test_each_rule_is_cited() -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("*.py") if path != Path(__file__)]
    cited = {int(number) for text in texts for number in CITED.findall(text)}
    assert cited == set(RULES)
