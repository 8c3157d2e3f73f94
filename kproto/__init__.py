"""kproto: every message of Kafka's protocol, declared once; pure bytes and values, no sockets, files or clocks."""

from __future__ import annotations

from kproto.errors import (
    DecodeError,
    EncodeError,
    FrameTooLarge,
    KprotoError,
    LocalProtocolError,
    ProtocolError,
    RemoteProtocolError,
    UnsupportedVersion,
)

__all__ = [
    "DecodeError",
    "EncodeError",
    "FrameTooLarge",
    "KprotoError",
    "LocalProtocolError",
    "ProtocolError",
    "RemoteProtocolError",
    "UnsupportedVersion",
]
