"""A few kills of kproto under load, in both durabilities. Two hundred of them: `python -m bench`."""

from __future__ import annotations

import json

import pytest

import bench.__main__
from bench.peers.durability import ON_DISK
from tests.requirements import need_go

ROUNDS = 5
FAULTS = ("lost", "torn", "invented")


@pytest.mark.slow  # real processes are killed and started again
@pytest.mark.parametrize("durability", ON_DISK)
def test_nothing_that_was_answered_is_lost_or_torn_by_sigkill(
    durability: str, capsys: pytest.CaptureFixture[str]
) -> None:
    need_go()
    asked = ["torture", "--only", "kproto", "--durability", durability, "--rounds", str(ROUNDS)]
    status = bench.__main__.main([*asked, "--json", "--check"])
    out, err = capsys.readouterr()
    counted = json.loads(out)["kproto"]
    assert {fault: counted[fault] for fault in FAULTS} == dict.fromkeys(FAULTS, 0), err
    assert status == 0
    assert counted["kills"] >= ROUNDS
    assert counted["commits_answered"] > 0
    assert counted["offsets_compared"] >= ROUNDS * 6 * 164
