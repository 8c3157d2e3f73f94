"""Properties of a construct node that the generator uses: struct code, code of the length, least size."""

from __future__ import annotations

import struct

from construct import Construct, FormatField

from kproto.primitives import Boolean, KafkaString, NullableStruct, Prefixed, TypedStruct, UuidBytes


def fixed_code(node: Construct) -> str | None:
    """Return the struct code of a fixed-size primitive; None for any other node."""
    if isinstance(node, FormatField):
        return str(node.fmtstr[-1])
    if isinstance(node, Boolean):
        return "?"
    if isinstance(node, UuidBytes):
        return "16s"
    return None


def codes_size(codes: str) -> int:
    """Return the bytes of neighboring fields with these struct codes."""
    return struct.calcsize(">" + codes)


def prefix_code(node: Prefixed) -> str:
    """Return the struct code of a length; a compact length is read as one byte, which it nearly always is."""
    return "B" if node.prefix is None else str(node.prefix.fmtstr[-1])


def default_length(node: KafkaString, default: str | None) -> int | None:
    """Return the length, as encoded, that means null, for a string whose default is null; None for any other string.

    Only null is worth a guess. An empty default is not: the member id, for example, is empty in the commits of
    consumers without a group membership only.
    """
    if default is None and node.nullable:
        return 0 if node.compact else -1
    return None


def size_min(node: Construct) -> int:
    """Return the least number of bytes of a value of this node."""
    if (code := fixed_code(node)) is not None:
        return codes_size(code)
    if isinstance(node, Prefixed):
        return codes_size(prefix_code(node))
    if isinstance(node, NullableStruct):
        return 1
    assert isinstance(node, TypedStruct)
    return sum(size_min(f.subcon) for f in node.subcon.subcons) + (node.tags is not None)
