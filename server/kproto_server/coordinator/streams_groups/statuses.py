"""The codes by which a heartbeat's response says why there are no tasks yet, or what the application has to do."""

from __future__ import annotations

import enum
from typing import NamedTuple


class StatusCode(enum.IntEnum):
    """The codes of StreamsGroupHeartbeat."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class Status(NamedTuple):
    """A code with its explanation."""

    code: StatusCode
    detail: str


INITIAL_DELAY = Status(
    StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay."
)
INTERVAL = Status(StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")
