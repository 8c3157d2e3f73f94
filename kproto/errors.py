"""The tree of errors: every exception class of kproto and kproto_server derives from `KprotoError`.

A Kafka error code is a value in a response, never an exception. An exception means that a peer's bytes make no sense,
that a caller asked for something that does not exist, or that a log cannot be read::

    KprotoError
    ├── ProtocolError            the wire protocol
    │   ├── LocalProtocolError   our side asked for bytes that the protocol cannot express
    │   │   └── EncodeError
    │   │       └── StringTooLong
    │   ├── RemoteProtocolError  the peer sent bytes that are not what they claim to be
    │   │   ├── DecodeError
    │   │   │   ├── CorruptBatch
    │   │   │   └── ContentTooLarge
    │   │   ├── TooManyElements
    │   │   └── FrameTooLarge
    │   └── UnsupportedVersion
    ├── LogError                 the files of a log, of a data directory or of tables
    │   ├── NoLog
    │   └── CorruptLog
    ├── UsageError               an argument, an option or a setting is wrong; a ValueError too
    │   └── CommandLineError
    └── MissingPackage

Errors that belong to one module (an address in use, a client that does not start) are declared there, each as a
subclass of one of these. The text of every error is complete without its type: one line that a user can act on.
"""

from __future__ import annotations


class KprotoError(Exception):
    """Base of every exception that kproto raises on purpose."""


class ProtocolError(KprotoError):
    """Base of the errors of the wire protocol."""


class LocalProtocolError(ProtocolError):
    """The caller asked for bytes that the protocol cannot express."""


class RemoteProtocolError(ProtocolError):
    """The peer sent bytes that are not what they claim to be; a real broker closes the connection (BA-6)."""


class DecodeError(RemoteProtocolError):
    """Bytes do not have the declared layout.

    ``path`` names the field (``OffsetCommitRequest.topics[0].name``), ``position`` the position in bytes.
    """

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class CorruptBatch(DecodeError):
    """The checksum of a batch does not match its content; a broker responds to such a Produce with CORRUPT_MESSAGE."""


class ContentTooLarge(DecodeError):
    """The records of a batch have more bytes when decompressed than the caller accepts."""


class TooManyElements(RemoteProtocolError):
    """The arrays and tag sections of a message have more elements together than the caller accepts."""

    def __init__(self) -> None:
        super().__init__("more elements than are accepted in one message")


_HTTP_BEGINS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ", b"HTTP")
OTHER_PROTOCOLS: dict[bytes, str] = {b"\x16\x03": "TLS", **dict.fromkeys(_HTTP_BEGINS, "HTTP")}
"""The first bytes of a stream, and its protocol."""


class FrameTooLarge(RemoteProtocolError):
    """A frame announces a size that is negative or above the limit, both in bytes (BA-1).

    The text names the protocol if the bytes of the size begin one that is often sent to the wrong port.
    """

    def __init__(self, size: int, limit: int) -> None:
        begin = (size % (1 << 32)).to_bytes(4, "big")
        protocol = next((name for start, name in OTHER_PROTOCOLS.items() if begin.startswith(start)), None)
        instead = "" if protocol is None else f": the peer speaks {protocol} instead of Kafka's protocol"
        super().__init__(f"frame size {size} is not within 0..{limit}{instead}")
        self.size = size
        self.limit = limit


class EncodeError(LocalProtocolError):
    """A value does not fit its declared layout; ``path`` names the field."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class StringTooLong(EncodeError):
    """A string has more bytes than the protocol can express; a broker responds UNKNOWN_SERVER_ERROR then."""


class UnsupportedVersion(ProtocolError):
    """The API key or its version is not declared; ``api_key`` is -1 for a message other than a request or response."""

    def __init__(self, api_key: int, api_version: int) -> None:
        super().__init__(f"API key {api_key} version {api_version} is not declared")
        self.api_key = api_key
        self.api_version = api_version


class LogError(KprotoError):
    """The files of a log, of a data directory or of tables cannot be used."""


class NoLog(LogError):
    """A path has no log, or a log without the records that were asked for."""


class CorruptLog(LogError):
    """A log is damaged: file, position in bytes (in a checkpoint: the line), offset if known, and the reason."""

    def __init__(self, file: str, position: int, offset: int | None, reason: str, *, unit: str = "byte") -> None:
        at_offset = "" if offset is None else f", offset {offset}"
        super().__init__(f"{file} at {unit} {position}{at_offset}: {reason}")
        self.file = file
        self.position = position
        self.offset = offset
        self.reason = reason


class UsageError(KprotoError, ValueError):
    """An argument, an option or a setting does not exist or has an invalid value."""


class CommandLineError(UsageError):
    """The command line is wrong."""


class MissingPackage(KprotoError):
    """A compression or the scheme of a URI needs a package that is not installed."""

    def __init__(self, need: str, package: str) -> None:
        super().__init__(f"{need} needs the package {package} (pip install {package})")
        self.need = need
        self.package = package
