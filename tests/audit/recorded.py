"""The recorded request logs in `fixtures/request-logs`, and the program whose requests they have."""

from __future__ import annotations

import sys
from pathlib import Path

from kproto_server.releases.kafka_version import KafkaVersion

ROOT = Path(__file__).resolve().parent.parent.parent
LOGS = ROOT / "fixtures/request-logs"
LEVELS = {
    "0.10.0.1": "DEBUG",
    "0.10.2.2": "TRACE",
    "0.11.0.3": "DEBUG",
    "2.0.1": "DEBUG",
    "2.7.2": "TRACE",
    "2.8.2": "DEBUG",
    "3.9.2": "DEBUG",
    "4.4.0": "TRACE",
}
"""The level of kafka.request.logger, by release; 0.10.2 logs requests at TRACE only."""
TEXT_FORMATS = [release for release in LEVELS if not KafkaVersion.named(release).at_least(2, 8)]
CLIENTS = ("administration", "archive", "billing", "shop", "warehouse")
"""Client ids of the program."""
OLD_REQUESTS = ((2, 0), (8, 2), (8, 3), (8, 4))
"""ListOffsets v0, which 4.0 removed, and OffsetCommit v2 to v4."""


def log_of(release: str) -> Path:
    return LOGS / f"{release}.log"


def program(release: str) -> list[str]:
    """Return the command of the program; its old client sends those of `OLD_REQUESTS` that the release serves."""
    version = KafkaVersion.named(release)
    words = [f"{key}:{api_version}" for key, api_version in OLD_REQUESTS if version.serves(key, api_version)]
    return [sys.executable, str(Path(__file__).with_name("program.py")), *words]
