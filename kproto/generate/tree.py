"""What the generator asks of a construct node: its struct code, how its length is written, its least size."""

from __future__ import annotations

import struct

from construct import Construct, FormatField

from kproto.primitives import Boolean, KafkaString, NullableStruct, Octets16, Prefixed, TypedStruct


def fixed_code(node: Construct) -> str | None:
    """Return the struct code of a fixed-size primitive, or None."""
    if isinstance(node, FormatField):
        return str(node.fmtstr[-1])
    if isinstance(node, Boolean):
        return "?"
    if isinstance(node, Octets16):
        return "16s"
    return None


def prefix_code(node: Prefixed) -> str:
    """Return the struct code of a length; a compact one is read as the single octet that it mostly is."""
    return "B" if node.prefix is None else str(node.prefix.fmtstr[-1])


def guessed_length(node: KafkaString, default: str | None) -> int | None:
    """Return the length that says null where that is the default; None: nothing to guess.

    An empty string is no guess: a member id is empty in a simple consumer's commit only.
    """
    if default is None and node.nullable:
        return 0 if node.compact else -1
    return None


def size_min(node: Construct) -> int:
    """Return the fewest octets that a value of this construct can have."""
    if (code := fixed_code(node)) is not None:
        return struct.calcsize(">" + code)
    if isinstance(node, Prefixed):
        return struct.calcsize(">" + prefix_code(node))
    if isinstance(node, NullableStruct):
        return 1
    assert isinstance(node, TypedStruct)
    return sum(size_min(f.subcon) for f in node.subcon.subcons) + (node.tags is not None)
