"""The base classes of declared messages: `Message`, `Request` and `Response`, which encode and decode themselves.

Declarations know no codec, and the code generator knows no `Message`: both use `kproto.declaration.VersionedStruct`.
This module is the layer above them that joins the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.declaration import VersionedStruct
from kproto.message_codec import decode_exactly, message_codec

if TYPE_CHECKING:
    from typing import Self


class Message(VersionedStruct):
    """A declared message: a value that encodes itself in each declared version."""

    def encode(self, version: int) -> bytes:
        """Return the body in this version, without header and size.

        Raises:
            EncodeError: a field's value cannot be written in this version.
            UnsupportedVersion: the version is not declared.
        """
        return message_codec(type(self), version).encode(self)

    @classmethod
    def decode(cls, data: bytes, version: int) -> Self:
        """Return the value of a body that fills ``data`` exactly.

        Raises:
            DecodeError: the bytes are truncated, hostile, do not have this layout, or continue after the body.
            UnsupportedVersion: the version is not declared.
        """
        return decode_exactly(cls, data, version)


class Request(Message):
    """A request body; ``api_key`` is Kafka's number of the API."""


class Response(Message):
    """A response body; ``api_key`` is Kafka's number of the API."""
