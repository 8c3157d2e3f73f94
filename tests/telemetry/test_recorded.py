"""The conversations about metrics of clients with real brokers (`conversation`), with kproto as those releases."""

from __future__ import annotations

import json

import pytest

from kproto_server.testing.in_memory import virtual_clock
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.telemetry.conversation import RECORDED, SETTINGS, run, run_without_receiver

RELEASES = sorted(path.stem for path in RECORDED.glob("*.json"))
RUNS = {"receiver": run, "none": run_without_receiver}


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_responds_as_the_real_one(release: str, kind: str) -> None:
    settings = SETTINGS | ({"client.telemetry.receiver.enable": "true"} if kind == "receiver" else {})
    state = new_state(release, settings=settings, clock=virtual_clock())
    steps = json.loads(json.dumps(RUNS[kind](InMemoryTransport(state), release)))
    recorded = json.loads((RECORDED / f"{release}.json").read_text())[kind]
    assert [one[0] for one in steps] == [one[0] for one in recorded]
    for ours, theirs in zip(steps, recorded, strict=True):
        assert ours == theirs
