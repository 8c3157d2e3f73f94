"""Members of consumer groups get the same responses from kproto as from real brokers of all lines with KIP-848."""

from __future__ import annotations

import pytest

from tests.consumer_groups.record_transcripts import run_on_kproto
from tests.consumer_groups.scripts import SCRIPTS
from tests.consumer_groups.transcripts import Transcript, topic_ids_by_release, transcripts
from tests.membership.members import differences

TOPIC_IDS = topic_ids_by_release()


@pytest.mark.parametrize("theirs", transcripts(), ids=lambda one: f"{one.release}-{one.script}")
def test_members_get_the_same_responses(theirs: Transcript) -> None:
    """GP-50 to GP-57, OC-26 and OF-36."""
    ours = run_on_kproto(theirs.release, SCRIPTS[theirs.script], TOPIC_IDS[theirs.release])
    assert differences(ours, theirs.steps) == []
