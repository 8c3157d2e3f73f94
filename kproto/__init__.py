"""Kafka's protocol as a library: every message declared once; bytes and values, no sockets, files or clocks."""

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
