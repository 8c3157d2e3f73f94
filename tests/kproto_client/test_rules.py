"""Each rule of the client proposals' specification is cited by a test, by its number."""

import re
from pathlib import Path

RULES = [
    *range(1, 7),  # settings
    *range(10, 17),  # what counts as missing, invalid, start
    *range(20, 25),  # table A3
    *range(30, 37),  # table A4
    *range(50, 56),  # roles
    *range(60, 68),  # buffers and the order of polls
    *range(70, 77),  # commits
    *range(80, 88),  # repeated crashes
    *range(90, 93),  # the model, the worked example, speed
]
CITED = re.compile(r"\bCK-(\d+)\b(?! to CK)(?<!to CK-\d\d)")
"""A number by itself: ranges name what a module is about."""


def test_each_rule_is_cited() -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("*.py") if path != Path(__file__)]
    cited = {int(number) for text in texts for number in CITED.findall(text)}
    assert cited == set(RULES)
