"""confluent-kafka's consumer with KIP-842 (offset resets) and KIP-333 (parallel catch-up); extra ``kproto[client]``."""

from kproto.client.consumer import Consumer
from kproto.client.decisions.catch_up_ranges import OffsetRange
from kproto.client.decisions.events import (
    CatchUpDone,
    CatchUpProgress,
    CatchUpStarted,
    CatchUpStopped,
    CheckpointDeleted,
    CheckpointsFailed,
    CheckpointsRead,
    CheckpointWritten,
    Event,
    PositionReset,
    StopReason,
)
from kproto.client.decisions.resets import ResetReason
from kproto.client.errors import ConfigError, NoOffsetForPartition, OffsetOutOfRange, UnsupportedBroker
from kproto.client.progress_line import ProgressLine

__all__ = [
    "CatchUpDone",
    "CatchUpProgress",
    "CatchUpStarted",
    "CatchUpStopped",
    "CheckpointDeleted",
    "CheckpointWritten",
    "CheckpointsFailed",
    "CheckpointsRead",
    "ConfigError",
    "Consumer",
    "Event",
    "NoOffsetForPartition",
    "OffsetOutOfRange",
    "OffsetRange",
    "PositionReset",
    "ProgressLine",
    "ResetReason",
    "StopReason",
    "UnsupportedBroker",
]
