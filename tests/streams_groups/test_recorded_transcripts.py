"""Members of streams groups get the same responses from kproto as from real brokers."""

from __future__ import annotations

import pytest

from tests.membership.members import differences
from tests.streams_groups.record_transcripts import run_on_kproto
from tests.streams_groups.transcripts import TRANSCRIPTS
from tests.transcripts import Transcript


@pytest.mark.parametrize(
    "theirs", TRANSCRIPTS.transcripts, ids=lambda one: f"{one.script}-v{one.variant}-{one.release}"
)
def test_members_get_the_same_responses(theirs: Transcript) -> None:
    ours = run_on_kproto(theirs.release, theirs.script, theirs.variant)
    assert differences(ours.steps, theirs.steps) == []
