"""Phrases that the command line and the report share: what was read, and what is to be known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.output import told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.spark.inputs import Coverage

UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def duration(total_ms: int) -> str:
    """In the two largest units that it has, rounded down: ``7 d``, ``1 h 30 min``."""
    parts: list[str] = []
    rest = total_ms
    for unit, size in UNITS:
        count, rest = divmod(rest, size)
        if count and len(parts) < 2:
            parts.append(f"{count:,} {unit}")
    return " ".join(parts) or "0 ms"


def percent(share: float) -> str:
    """Rounded, but neither to nothing nor to everything what is not."""
    text = f"{100 * share:.1f}"
    if text == "0.0" and share > 0:
        return "less than 0.1 %"
    if text == "100.0" and share < 1:
        return "more than 99.9 %"
    return f"{text.removesuffix('.0')} %"


def coverage(read: Coverage) -> Iterator[str]:
    """Say what was read."""
    files = f"{plural(read.files, 'file')}, {plural(read.bytes, 'byte')}"
    held = f"{plural(read.records, 'record')} in {plural(read.batches, 'batche').replace('1 batche', '1 batch')}"
    yield f"{read.path}: {files}: {held} of {plural(len(read.ends), 'partition')} of __consumer_offsets"
    yield f"offsets {read.first_offset:,} to {read.last_offset:,}, from {told(read.first_ts)} to {told(read.last_ts)}"


def caveats(read: Coverage, compaction: str | None) -> Iterator[str]:
    """Say what is not in what was read, and what that does to the answer (None: nothing)."""
    if read.missing and compaction is not None:
        yield f"compacted: {percent(read.missing_share)} of the offsets are gone; {compaction}"
    if read.starts_late and compaction is not None:
        yield f"{plural(read.starts_late, 'partition')} begin after offset 0: what was before is gone"
    if read.skipped:
        by_number = sorted(read.skipped.items(), key=lambda item: int(item[0]))
        kinds = ", ".join(f"{kind} ({count:,})" for kind, count in by_number)
        yield f"{plural(sum(read.skipped.values()), 'record')} skipped, of types that no table has: {kinds}"
