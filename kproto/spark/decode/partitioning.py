"""Which partition of the offsets topic holds a group (LF-40)."""

from __future__ import annotations

import struct

INT32_MIN = -(2**31)


def java_hash(text: str) -> int:
    """Return Java's String.hashCode: over UTF-16 code units, in 32-bit signed arithmetic."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for unit in struct.unpack(f"<{len(units) // 2}H", units):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 2**32 if value & 0x80000000 else value


def partition_for(group_id: str, partition_count: int) -> int:
    """Return the partition of a group, of so many that the topic has."""
    value = java_hash(group_id)
    return 0 if value == INT32_MIN else abs(value) % partition_count
