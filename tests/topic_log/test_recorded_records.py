"""Records written to, read from and deleted from brokers of four releases, asked again of ours in their profiles.

Every difference is named here with its reason; those that are a choice of ours are in server/DEVIATIONS.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.topic_log.recorded import Replay

if TYPE_CHECKING:
    from tests.topic_log.recorded import Row

RELEASES = ("2.1.1", "2.8.2", "3.9.2", "4.4.0")

PRODUCE, FETCH, ALTER_CONFIGS = 0, 1, 33

REASONS = {
    (PRODUCE, "fewer records than it says"): "DEVIATION: batches are not opened",
    (PRODUCE, "gzip that is none"): "DEVIATION: batches are not opened",
    (PRODUCE, "null"): "DEVIATION: null is an error of the partition, as in 2.8; others say nothing at all, for ever",
    (PRODUCE, "torn"): "DEVIATION: 2.1 closes the connection, as it does not of other records that are not one batch",
    (PRODUCE, "not a batch"): "DEVIATION: releases differ in what they make of bytes at random: text, closed, error",
    (FETCH, "and what is stored"): "DEVIATION: a greatest timestamp that no record has is stored as it came",
    (FETCH, "budget for one and a half"): "DEVIATION: batches are whole; what is left of the budget goes on",
    (FETCH, "budget for all but one"): "DEVIATION: batches are whole; what is left of the budget goes on",
    (FETCH, "session, beyond the end"): "DEVIATION: by id, in another order of topics where one is not known",
    (FETCH, "session, still beyond the end"): "DEVIATION: by id, in another order of topics where one is not known",
}


def _reason(release: str, row: Row) -> str | None:
    if release == "2.1.1" and (row.api_key, row.note) == (ALTER_CONFIGS, "null value"):
        return "DEVIATION: 2.1 closes the connection"
    return REASONS.get((row.api_key, row.note))


@pytest.mark.parametrize("release", RELEASES)
def test_records_as_four_releases_have_them(release: str) -> None:
    """BA-60 to BA-65, BA-70 to BA-77, BA-80 to BA-83, BA-93, BA-100."""
    found = Replay(release).differences()
    assert [str(one) for one in found if _reason(release, one.row) is None] == []
