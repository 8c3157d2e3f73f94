"""Records written to, read from and deleted from brokers of many releases, asked again of ours as those Kafka versions.

Every difference is named here with its reason; those that are a choice of ours are in server/DEVIATIONS.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oracle.releases import number
from tests.partition_log.recorded import Replay

if TYPE_CHECKING:
    from tests.partition_log.recorded import Row

RELEASES = (
    "1.1.1",
    "2.0.1",
    "2.1.1",
    "2.2.2",
    "2.3.1",
    "2.4.1",
    "2.5.1",
    "2.6.3",
    "2.7.2",
    "2.8.2",
    "3.0.2",
    "3.3.2",
    "3.4.1",
    "3.5.2",
    "3.8.1",
    "3.9.2",
    "4.0.0",
    "4.4.0",
)

PRODUCE, FETCH, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 0, 1, 33, 44

REASONS = {
    (PRODUCE, "null"): "DEVIATION: null is an error of the partition, as in 2.8; others say nothing at all, for ever",
    (PRODUCE, "torn"): "DEVIATION: in version 9, 2.8 to 3.4 close the connection or leave the partition out",
    (PRODUCE, "not a batch"): "DEVIATION: the same",
    (FETCH, "and what is stored"): "DEVIATION: a greatest timestamp that no record has is stored as it came",
    (FETCH, "budget for one and a half"): "DEVIATION: batches are whole; what is left of the budget goes on",
    (FETCH, "budget for all but one"): "DEVIATION: batches are whole; what is left of the budget goes on",
    (FETCH, "session, beyond the end"): "DEVIATION: by id, in another order of topics where one is not known",
    (FETCH, "session, still beyond the end"): "DEVIATION: by id, in another order of topics where one is not known",
}


UP_TO_2_5 = {
    (ALTER_CONFIGS, "null value"): "DEVIATION: they close the connection",
    **dict.fromkeys(
        [
            (INCREMENTAL_ALTER_CONFIGS, note)
            for note in ("append", "append again", "subtract", "subtract what is not there")
        ],
        "DEVIATION: they fail where the topic has no such config yet",
    ),
}


def _reason(release: str, row: Row) -> str | None:
    question = row.api_key, row.note
    if question in UP_TO_2_5:
        return UP_TO_2_5[question] if number(release) < (2, 6) else None
    return REASONS.get(question)


@pytest.mark.parametrize("release", RELEASES)
def test_records_as_real_brokers_have_them(release: str) -> None:
    """BA-60 to BA-65, BA-70 to BA-77, BA-80 to BA-83, BA-93, BA-100."""
    found = Replay(release).differences()
    assert [str(one) for one in found if _reason(release, one.row) is None] == []


@pytest.mark.parametrize("release", ["1.1.1", "2.3.1", "2.4.1", "2.8.2", "3.9.2", "4.4.0"])
def test_batches_with_wrong_contents(release: str) -> None:
    """BA-62, BA-72, BA-77, BA-80: what Produce refuses, and what is read of the batches that it has accepted."""
    found = Replay(f"contents-{release}", release).differences()
    assert [str(one) for one in found if _contents_reason(release, one.row) is None] == []


@pytest.mark.parametrize(
    "release", ["0.11.0.3", "1.1.1", "2.0.1", "2.4.1", "2.5.1", "2.8.2", "3.3.2", "3.9.2", "4.0.0", "4.4.0"]
)
def test_transactions_of_partitions(release: str) -> None:
    """BA-65, BA-75, BA-80: open, committed and aborted transactions, and fenced markers."""
    found = Replay(f"transactions-{release}", release).differences()
    assert [str(one) for one in found if _transactions_reason(release, one.row) is None] == []


@pytest.mark.parametrize("release", ["0.11.0.3", "2.8.2", "3.9.2", "4.4.0"])
def test_transactions_of_a_coordinator(release: str) -> None:
    """BA-65, BA-75, BA-80: transactional producers, two instances of one of them, and partitions that are not added."""
    assert [str(one) for one in Replay(f"coordinated-{release}", release, {}).differences()] == []


@pytest.mark.parametrize("release", ["2.8.2", "3.9.2", "4.4.0"])
def test_timestamp_types_and_batches_larger_than_segments(release: str) -> None:
    """BA-62: batches with a timestamp type that only the broker may set, and batches near `segment.bytes`."""
    assert [str(one) for one in Replay(f"limits-{release}", release).differences()] == []


def _transactions_reason(release: str, row: Row) -> str | None:
    chapter, _, question = row.note.partition(":")
    is_4 = number(release) >= (4, 0)
    if row.api_key == FETCH and chapter == "as message sets, from a marker":
        return "DEVIATION: brokers from 2.0 on return the records behind a marker twice"
    if chapter in ("raised", "epoch raised within", "ended", "all") and question == " committed from 0":
        return None if number(release) >= (2, 6) else "DEVIATION: they list an ABORT marker without records"
    if is_4 and chapter in ("begins within", "begins behind"):
        return "DEVIATION: their last stable offset is where a batch begins, before the log start offset"
    if chapter in DELETED and question.endswith("time -3"):
        return "DEVIATION: a record that was deleted has the greatest timestamp"
    if chapter in DELETED and number(release) < (2, 4):
        return "DEVIATION: they forget producers, and their transactions, with the last record"
    return None


DELETED = (
    "begins behind",
    "all deleted",
    "further",
    "aborted",
    "marker left",
    "all but the marker",
    "the marker",
    "nothing left",
)


GREATEST_TIMESTAMP = "DEVIATION: a greatest timestamp that no record has is stored as it came"
UNREADABLE = (
    "DEVIATION: all records that cannot be read are invalid; later releases accept some of them in compressed form"
)
OFFSETS = "DEVIATION: compressed records that are not numbered from 0 have one error; 2.4.1 names each of them"
NEGATIVE = "DEVIATION: no consumer can use a negative offset"


def _contents_reason(release: str, row: Row) -> str | None:
    kind = row.note.rpartition(", at ")[0] or row.note
    if "greatest timestamp" in kind or (kind.startswith("timestamp ") and row.api_key != PRODUCE):
        return GREATEST_TIMESTAMP
    if kind.startswith(("size ", "header key too large")):
        return UNREADABLE
    if kind.startswith("negative deltas, none") and row.api_key != PRODUCE:
        return NEGATIVE
    if "deltas" in kind and release == "2.4.1":
        return OFFSETS
    return None
