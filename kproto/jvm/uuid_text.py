"""The text form of Kafka's ``Uuid``: topic ids, cluster ids, member ids and client instance ids in files and tools."""

from __future__ import annotations

import binascii

URL_SAFE = bytes.maketrans(b"+/", b"-_")
LENGTH = 22
"""Characters of 16 bytes in base64, without the two of padding."""


def uuid_text(uuid: bytes) -> str:
    """Return 16 bytes as Kafka writes a UUID: in base64url, without padding."""
    return binascii.b2a_base64(uuid, newline=False)[:LENGTH].translate(URL_SAFE).decode()
