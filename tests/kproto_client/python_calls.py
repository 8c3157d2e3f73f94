"""Counts the Python functions that a call runs: what a call costs, on any machine."""

import sys
from typing import Any

from tests.kproto_client.kafka_fixture import LIMIT_S


def calls_of_consume(consumer: Any, count: int) -> int:
    """Return how many Python functions a `consume` of this many records runs."""
    counted = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal counted
        counted += event == "call"

    sys.setprofile(note)
    try:
        messages = consumer.consume(count, LIMIT_S)
    finally:
        sys.setprofile(None)
    assert len(messages) == count
    return counted
