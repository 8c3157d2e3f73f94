"""server/DEVIATIONS.md lists every API that kproto does not implement, with its error code."""

from __future__ import annotations

import re
from pathlib import Path

from kproto.messages import APIS
from kproto_server.handlers.unsupported import RESPONSES

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "server" / "DEVIATIONS.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in TEXT.splitlines() if line.startswith("| ")]


def test_each_api_that_is_not_implemented_is_listed_with_its_error() -> None:
    listed: dict[int, tuple[str, str]] = {}
    for keys, names, *rest in ROWS:
        if len(rest) == 2 and keys[0].isdigit():
            listed.update(zip(map(int, keys.split(", ")), [(name, rest[0]) for name in names.split(", ")], strict=True))
    assert {name for name, _ in listed.values()} == set(RESPONSES)
    for api_key, (name, response) in listed.items():
        assert APIS[api_key] == name
        error = RESPONSES[name].error
        assert re.findall(r"\b[A-Z]+_[A-Z_]+\b", response) == ([error.name] if error else []), name
