"""Kafka's protocol as a library: every message declared once, as bytes and values without I/O.

`client`, `logs`, `arrow` and `spark` are tools on it that do I/O.
"""

from __future__ import annotations

from kproto.errors import (
    CommandLineError,
    ContentTooLarge,
    CorruptBatch,
    CorruptLog,
    DecodeError,
    EncodeError,
    FrameTooLarge,
    KprotoError,
    LocalProtocolError,
    LogError,
    MissingPackage,
    NoLog,
    ProtocolError,
    RemoteProtocolError,
    StringTooLong,
    TooManyElements,
    UnsupportedVersion,
    UsageError,
)

__all__ = [
    "CommandLineError",
    "ContentTooLarge",
    "CorruptBatch",
    "CorruptLog",
    "DecodeError",
    "EncodeError",
    "FrameTooLarge",
    "KprotoError",
    "LocalProtocolError",
    "LogError",
    "MissingPackage",
    "NoLog",
    "ProtocolError",
    "RemoteProtocolError",
    "StringTooLong",
    "TooManyElements",
    "UnsupportedVersion",
    "UsageError",
]
