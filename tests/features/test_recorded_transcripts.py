"""Administrators get the same responses from kproto as from brokers of these releases."""

from __future__ import annotations

import pytest

from tests.features.record_transcripts import run_on_kproto, versions_of
from tests.features.scripts import SCRIPTS
from tests.features.transcripts import RECORDED
from tests.membership.members import differences


@pytest.mark.parametrize("release", RECORDED.releases)
@pytest.mark.parametrize("script", list(SCRIPTS))
def test_administrators_get_the_same_responses(script: str, release: str) -> None:
    theirs = RECORDED.of(script, release)
    assert [one.variant for one in theirs] == versions_of(script, release)
    found: list[str] = []
    for transcript in theirs:
        found += differences(run_on_kproto(release, script, transcript.variant).steps, transcript.steps)
    assert found == []
