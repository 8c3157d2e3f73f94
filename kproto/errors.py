"""What can go wrong with bytes: one documented error for a bad frame, one for a bad value.

A Kafka error code is a value in a response, never an exception. An exception here means "this peer's bytes make no
sense" (:class:`RemoteProtocolError`) or "we were asked to send nonsense" (:class:`LocalProtocolError`).
"""

from __future__ import annotations


class KprotoError(Exception):
    """Base of every error that kproto raises on purpose."""


class ProtocolError(KprotoError):
    """Base of the errors of the wire protocol; always one of the two subclasses below."""


class LocalProtocolError(ProtocolError):
    """Our own side asked for bytes that the protocol has no form for."""


class RemoteProtocolError(ProtocolError):
    """The peer sent bytes that are not what they claim to be; a real broker closes the connection (BA-6)."""


class DecodeError(RemoteProtocolError):
    """Bytes do not have the declared layout.

    ``path`` names the field (``OffsetCommitRequest.topics[0].name``), ``position`` the place in the buffer, in bytes.
    """

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class EncodeError(LocalProtocolError):
    """A value does not fit its declared layout; ``path`` names the field."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class UnsupportedVersion(ProtocolError):
    """No declaration knows this API key in this version."""

    def __init__(self, api_key: int, api_version: int) -> None:
        super().__init__(f"API key {api_key} version {api_version} is not declared")
        self.api_key = api_key
        self.api_version = api_version


class FrameTooLarge(RemoteProtocolError):
    """A frame announces a size that is negative or above the limit, both in bytes (BA-1)."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"frame size {size} is not within 0..{limit}")
        self.size = size
        self.limit = limit
