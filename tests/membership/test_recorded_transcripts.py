"""Members of classic groups get the same responses from kproto as from brokers of 19 releases."""

from __future__ import annotations

import pytest

from tests.membership.members import differences
from tests.membership.record_transcripts import run_on_kproto
from tests.membership.scripts import SCRIPTS
from tests.membership.transcripts import RECORDED, versions_of
from tests.transcripts import Transcript


@pytest.mark.parametrize("release", RECORDED.releases)
@pytest.mark.parametrize("script", list(SCRIPTS))
def test_members_get_the_same_responses(script: str, release: str) -> None:
    """GP-10 to GP-38.

    GP-15: `a_full_group`; GP-17: `two_members`, `joins_before_the_assignment`, and an Empty group in `a_member_alone`;
    GP-31: `two_members`, and a ghost in `a_member_alone`; GP-37: in each state, `two_members`,
    `joins_before_the_assignment`, `a_join_whose_member_leaves`, and for pending member ids `ids_that_are_given_out`;
    OC-25: a commit that extends the session in `a_silent_member`.
    """
    found: list[str] = []
    theirs = RECORDED.of(script, release)
    assert [one.variant for one in theirs] == versions_of(script, release)
    for transcript in theirs:
        found += _differences(transcript)
    assert found == []


def _differences(theirs: Transcript) -> list[str]:
    ours = run_on_kproto(theirs.release, theirs.script, theirs.variant)
    return differences(ours.steps, theirs.steps)
