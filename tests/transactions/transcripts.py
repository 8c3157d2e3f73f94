"""Transcripts of real brokers, `fixtures/transactions/transcripts.jsonl`."""

from __future__ import annotations

from tests.fixture_files import FIXTURES
from tests.transactions.scripts import SCRIPTS
from tests.transcripts import TranscriptFile

RECORDED = TranscriptFile(FIXTURES / "transactions" / "transcripts.jsonl", "tier", SCRIPTS)

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "num.partitions": "2",
}
"""The settings of the recorded brokers."""
