"""What librdkafka says when it can't go on in a partition (``auto.offset.reset=error``), and where to go then."""

from __future__ import annotations

import re

from confluent_kafka import Message

from kproto.client.core.reset import Log, out_of_range, truncated
from kproto.client.core.settings import Settings

TRUNCATED_AT = re.compile(r"log truncation detected at .*broker end offset is (\d+)")
"""How it speaks of a log that is not the one that was read (KIP-320); it tells the place nowhere else."""


def after_refusal(settings: Settings, message: Message, log: Log) -> int | None:
    """Where to go. A truncated log comes first; only if there is no place to tell, the bounds decide (CK-35)."""
    offset = message.offset()
    position = -1 if offset is None else offset
    found = TRUNCATED_AT.search(str(message.error()))
    if found is None:
        return out_of_range(settings, log, position)
    diverged_at = int(found[1])
    return truncated(settings, log, max(position, diverged_at + 1), diverged_at)
