"""A few kills of kproto under load, with both durabilities; `python -m bench torture` runs more."""

from __future__ import annotations

import json

import pytest

import bench.__main__
from bench.peers.durability import ON_DISK
from tests.requirements import need_go

ROUNDS = 5
FAULTS = ("lost", "torn", "invented")


@pytest.mark.slow  # kills and restarts real processes
@pytest.mark.parametrize("durability", ON_DISK)
def test_no_acknowledged_commit_is_lost_or_torn_by_sigkill(durability: str, capsys: pytest.CaptureFixture[str]) -> None:
    need_go()
    arguments = ["torture", "--only", "kproto", "--durability", durability, "--rounds", str(ROUNDS)]
    status = bench.__main__.main([*arguments, "--json", "--check"])
    out, err = capsys.readouterr()
    counted = json.loads(out)["kproto"]
    assert {fault: counted[fault] for fault in FAULTS} == dict.fromkeys(FAULTS, 0), err
    assert status == 0
    assert counted["kills"] >= ROUNDS
    assert counted["commits_acknowledged"] > 0
    assert counted["offsets_compared"] >= ROUNDS * 6 * 164
