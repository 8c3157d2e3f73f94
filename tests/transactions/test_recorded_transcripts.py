"""Transactional producers get the same responses from kproto as from brokers of seven releases."""

from __future__ import annotations

import pytest

from tests.membership.members import differences
from tests.transactions.producers import tiers_of
from tests.transactions.record_transcripts import run_on_kproto
from tests.transactions.scripts import SCRIPTS
from tests.transactions.transcripts import RECORDED


@pytest.mark.parametrize("release", RECORDED.releases)
@pytest.mark.parametrize("script", list(SCRIPTS))
def test_producers_get_the_same_responses(script: str, release: str) -> None:
    """BA-100 to BA-106, OC-50 to OC-58."""
    found: list[str] = []
    theirs = RECORDED.of(script, release)
    assert [one.variant for one in theirs] == tiers_of(release)
    for transcript in theirs:
        ours = run_on_kproto(release, script, transcript.variant)
        lines = differences(ours.steps, transcript.steps)
        found += [f"tier {transcript.variant}", *lines] if lines else []
    assert found == []
