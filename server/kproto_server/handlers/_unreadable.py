"""Partitions whose log cannot be read: each has an error in the response, and the others have their records."""

from __future__ import annotations

import logging
from functools import lru_cache

from kproto.codes import ErrorCode
from kproto_server.storage.errors import DamagedBatch

logger = logging.getLogger("kproto.log")


def error_of_read(error: Exception, topic: str, partition: int) -> ErrorCode:
    """Return the error code of a partition that cannot be read, and log why its file cannot."""
    if not isinstance(error, OSError) or isinstance(error, DamagedBatch):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    logger.error("%s-%d can't be read: %s", topic, partition, error)
    return ErrorCode.KAFKA_STORAGE_ERROR


@lru_cache(maxsize=1000)
def warn_of_missing_package(topic: str, reason: str) -> None:
    """Log once why the records of a topic are refused: most clients do not show the text of the response."""
    logger.warning("%s: compressed records are refused, because this topic's have to be decoded: %s", topic, reason)
