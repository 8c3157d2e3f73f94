"""Transactional producers get the same responses from kproto as from brokers of four releases."""

from __future__ import annotations

import pytest

from tests.membership.members import differences
from tests.transactions.producers import tiers_of
from tests.transactions.record_transcripts import run_on_kproto
from tests.transactions.scripts import SCRIPTS
from tests.transactions.transcripts import transcripts

RELEASES = sorted({transcript.release for transcript in transcripts()})


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("script", list(SCRIPTS))
def test_producers_get_the_same_responses(script: str, release: str) -> None:
    """BA-100 to BA-106, OC-50 to OC-58."""
    found: list[str] = []
    theirs = [one for one in transcripts() if (one.script, one.release) == (script, release)]
    assert [one.tier for one in theirs] == tiers_of(release)
    for transcript in theirs:
        ours = run_on_kproto(release, script, transcript.tier)
        lines = differences(ours.steps, transcript.steps)
        found += [f"tier {transcript.tier}", *lines] if lines else []
    assert found == []
