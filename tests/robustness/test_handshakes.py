"""Broken handshakes harm no broker; and what harms it is found.

`python -m tests.robustness.handshakes` runs the same for as long as one likes.
"""

from __future__ import annotations

import random

import pytest

from tests.robustness import handshakes
from tests.robustness.handshakes import conversation, damaged, pieces

SEED = 1


def test_a_few_handshakes_find_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "ROUNDS_BETWEEN_CHECKS", 5)
    assert handshakes.run(SEED, 2) == []


def test_an_error_of_the_broker_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr("kproto_server.security.sasl.Authentication.step", broken)
    assert handshakes.run(SEED, 60)


def test_pieces_are_the_whole() -> None:
    choose = random.Random(SEED)  # noqa: S311 - reproducible
    for _ in range(200):
        data = b"".join(conversation(choose))
        assert b"".join(pieces(data, choose)) == data
    assert any(damaged(b"x" * 50, choose) != b"x" * 50 for _ in range(20))
