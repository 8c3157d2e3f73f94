"""Members of share groups get the same responses from kproto as from real brokers."""

from __future__ import annotations

import pytest

from tests.membership.members import differences
from tests.share_groups.record_transcripts import run_on_kproto
from tests.share_groups.transcripts import SCRIPTS, Transcript, transcripts


@pytest.mark.parametrize("theirs", transcripts(), ids=lambda one: f"{one.script}-{one.release}")
def test_members_get_the_same_responses(theirs: Transcript) -> None:
    assert differences(run_on_kproto(theirs.release, theirs.script, SCRIPTS[theirs.script]).steps, theirs.steps) == []
