"""The topic configs that decide which records a partition accepts, and how it stores them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.compression import Compression
from kproto_server.configuration.topic_configs import topic_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.configuration.settings import Settings

UNLIMITED_MS = 2**63 - 1
KEPT_MAX = 1000


class LogConfig(NamedTuple):
    """The configs of one topic."""

    message_bytes_max: int
    """`max.message.bytes`."""
    is_compacted: bool = False
    has_append_time: bool = False
    """Whether `message.timestamp.type` is LogAppendTime."""
    compression: Compression | None = None
    """`compression.type`; None: the codec of the producer."""
    timestamp_after_max_ms: int | None = None
    """`message.timestamp.after.max.ms`: how far a timestamp may be ahead of the broker's clock; None: unlimited."""
    timestamp_before_max_ms: int | None = None
    """`message.timestamp.before.max.ms`: how far a timestamp may be behind the broker's clock; None: unlimited."""
    in_sync_replicas_min: int = 1
    """`min.insync.replicas`."""
    segment_bytes: int = 1 << 30
    """`segment.bytes`: no batch is larger."""

    @property
    def takes_batches_as_they_are(self) -> bool:
        """Whether no config asks for a look at each record, for another batch than the producer sent, or for a smaller
        one than `max.message.bytes` allows."""
        message_bytes_max, is_compacted, has_append_time, compression, _, timestamp_before_max_ms, _, segment_bytes = (
            self
        )
        takes_records = not (is_compacted or has_append_time) and timestamp_before_max_ms is None
        return takes_records and compression is None and message_bytes_max <= segment_bytes


def log_config(settings: Settings, own_configs: Mapping[str, str]) -> LogConfig:
    """Return the configs of a topic on a node with these settings; ``own_configs`` were set for the topic itself."""
    return _log_config(settings, tuple(own_configs.items()))


@lru_cache(maxsize=KEPT_MAX)
def _log_config(settings: Settings, own_configs: tuple[tuple[str, str], ...]) -> LogConfig:
    """As `log_config`; settings are never changed, but replaced. Kept: this takes 10 us, a third of the rest of a small
    request."""
    own = dict(own_configs)

    def config(name: str) -> str:
        return topic_config(settings, own, name)

    compression = config("compression.type")
    both_limits = _limit(config("message.timestamp.difference.max.ms"))
    return LogConfig(
        message_bytes_max=int(config("max.message.bytes")),
        is_compacted="compact" in config("cleanup.policy"),
        has_append_time=config("message.timestamp.type") == "LogAppendTime",
        compression=None if compression in ("", "producer") else _compression(compression),
        timestamp_after_max_ms=_limit(config("message.timestamp.after.max.ms"), both_limits),
        timestamp_before_max_ms=_limit(config("message.timestamp.before.max.ms"), both_limits),
        in_sync_replicas_min=int(config("min.insync.replicas") or 1),
        segment_bytes=int(config("segment.bytes")),
    )


def _compression(name: str) -> Compression:
    return Compression.NONE if name == "uncompressed" else Compression[name.upper()]


def _limit(value: str, default: int | None = None) -> int | None:
    """Return a limit in ms; ``default`` if the config is missing or unlimited."""
    return int(value) if value and int(value) < UNLIMITED_MS else default
