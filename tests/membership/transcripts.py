"""Transcripts of real brokers, `fixtures/membership/transcripts.jsonl`."""

from __future__ import annotations

from kproto_server.releases.kafka_version import KafkaVersion
from tests.fixture_files import FIXTURES
from tests.membership.scripts import SCRIPTS
from tests.transcripts import TranscriptFile

RECORDED = TranscriptFile(FIXTURES / "membership" / "transcripts.jsonl", "join_version", SCRIPTS)

SETTINGS = {
    "group.max.size": "3",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
"""The settings of the recorded brokers."""

IN_ALL_VERSIONS = "a_member_alone"
VERSIONS = (0, 4)
"""Versions of JoinGroup for the other scripts, besides their first one and the newest of the release."""


def versions_of(script: str, release: str) -> list[int]:
    """Return the versions of JoinGroup in which a script runs against a release."""
    low, newest = KafkaVersion.named(release).api_versions[11]
    first = max(low, SCRIPTS[script].first_version)
    if first > newest:
        return []
    if script == IN_ALL_VERSIONS:
        return list(range(first, newest + 1))
    if SCRIPTS[script].takes_long:
        return [newest]
    return sorted({first, newest, *(version for version in VERSIONS if first <= version <= newest)})
