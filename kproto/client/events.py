"""Publishes events: to the logger and to the metrics at once, to the user's callback from the next call."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from kproto.client.configuration import Configuration
from kproto.client.decisions.events import (
    CatchUpProgress,
    CheckpointDeleted,
    CheckpointsFailed,
    CheckpointWritten,
    Event,
    PositionReset,
)
from kproto.client.decisions.resets import ResetReason
from kproto.client.metrics import open_metrics

Publish = Callable[[Event], None]
LOG_LEVELS: dict[type[object], int] = {
    CatchUpProgress: logging.DEBUG,
    CheckpointWritten: logging.DEBUG,
    CheckpointDeleted: logging.DEBUG,
    CheckpointsFailed: logging.WARNING,
}
"""Of other events: INFO, and WARNING for a reset of a position that was valid before."""


class Events:
    """The events of one consumer.

    Events arise in the middle of a change, also in callbacks of librdkafka. So the user's callback is called later,
    from `poll`, `consume` and `close`, when it may call the consumer and when its exception loses no record.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._callback = configuration.event_callback
        self._logger: Any = configuration.librdkafka.get("logger") or logging.getLogger("kproto.client")
        self._metrics = open_metrics(configuration.group_id)
        self._waiting: deque[Event] = deque()

    @property
    def are_waiting(self) -> bool:
        """Whether events wait for the user's callback."""
        return bool(self._waiting)

    def publish(self, event: Event) -> None:
        """Log and count an event, and keep it for the user's callback."""
        self._logger.log(_log_level(event), "%s", event)
        if self._metrics is not None:
            self._metrics.add(event)
        if self._callback is not None:
            self._waiting.append(event)

    def call_back(self) -> None:
        """Call the user's callback with each event that waits. After its exception, the next call continues."""
        while self._waiting:
            assert self._callback is not None
            self._callback(self._waiting.popleft())


def _log_level(event: Event) -> int:
    if isinstance(event, PositionReset) and event.reason is not ResetReason.NO_COMMITTED_OFFSET:
        return logging.WARNING
    return LOG_LEVELS.get(type(event), logging.INFO)
