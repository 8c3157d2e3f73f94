"""Typed readers of the files under `fixtures/`: the one way by which tests read them. Nothing here judges."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFacts:
    """One row of Kafka's error table."""

    code: int
    name: str
    retriable: bool
    message: str


@cache
def error_codes() -> Mapping[str, ErrorFacts]:
    """Kafka's error table by name."""
    rows: list[dict[str, Any]] = json.loads((FIXTURES / "kafka-error-codes.json").read_text())
    return {row["name"]: ErrorFacts(**row) for row in rows}
