"""Transcripts of real brokers, `fixtures/features/transcripts.jsonl`."""

from tests.features.scripts import SCRIPTS
from tests.fixture_files import FIXTURES
from tests.transcripts import TranscriptFile

RECORDED = TranscriptFile(FIXTURES / "features" / "transcripts.jsonl", "version", SCRIPTS)
