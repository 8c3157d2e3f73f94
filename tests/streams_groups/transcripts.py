"""Transcripts of real brokers, `fixtures/streams-groups/transcripts.jsonl`: a line has one, and its releases."""

from __future__ import annotations

from tests.fixture_files import FIXTURES
from tests.streams_groups.config_scripts import CONFIG_SCRIPTS
from tests.streams_groups.scripts import DELAY_MS, SCRIPTS, SESSION_MS
from tests.transcripts import TranscriptFile

ALL_SCRIPTS = SCRIPTS | CONFIG_SCRIPTS
TRANSCRIPTS = TranscriptFile(FIXTURES / "streams-groups" / "transcripts.jsonl", "version", ALL_SCRIPTS)

SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": str(DELAY_MS),
    "group.streams.session.timeout.ms": str(SESSION_MS),
    "group.streams.heartbeat.interval.ms": "1000",
    "group.streams.max.size": "5",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
    "auto.create.topics.enable": "false",
}
"""The settings of the recorded brokers."""
SETTINGS_SINCE_4_3 = {"group.streams.assignment.interval.ms": "0"}
