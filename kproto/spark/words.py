"""Phrases that the command line and the report share: coverage and caveats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.output import time_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.spark.input import Coverage

UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))


def plural(count: int, noun: str) -> str:
    if count == 1:
        return f"{count:,} {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def duration(total_ms: int) -> str:
    """Return a duration in its two largest units, rounded down: ``7 d``, ``1 h 30 min``."""
    parts: list[str] = []
    rest = total_ms
    for unit, size in UNITS:
        count, rest = divmod(rest, size)
        if count and len(parts) < 2:
            parts.append(f"{count:,} {unit}")
    return " ".join(parts) or "0 ms"


def percent(share: float) -> str:
    """Return a rounded percentage; only 0 and 1 are written as 0 % and 100 %."""
    text = f"{100 * share:.1f}"
    if text == "0.0" and share > 0:
        return "less than 0.1 %"
    if text == "100.0" and share < 1:
        return "more than 99.9 %"
    return f"{text.removesuffix('.0')} %"


def coverage(read: Coverage) -> Iterator[str]:
    """Yield the lines about what was read."""
    files = f"{plural(read.files, 'file')}, {plural(read.bytes, 'byte')}"
    content = f"{plural(read.records, 'record')} in {plural(read.batches, 'batch')}"
    yield f"{read.path}: {files}: {content} of {plural(len(read.ends), 'partition')} of __consumer_offsets"
    times = f"from {time_text(read.first_ts)} to {time_text(read.last_ts)}"
    yield f"offsets {read.first_offset:,} to {read.last_offset:,}, {times}"


def gaps(read: Coverage) -> Iterator[str]:
    """Yield what of the offsets topic is not in the input, or was left out."""
    if read.groups:
        yield f"restricted to {plural(read.groups, 'group')}"
    if read.missing:
        yield f"{percent(read.missing_share)} of its records were removed"
    if read.of_partitions is not None and read.partitions < read.of_partitions:
        yield f"it has {read.partitions:,} of at least {plural(read.of_partitions, 'partition')}"


def caveats(read: Coverage, compaction: str | None) -> Iterator[str]:
    """Yield the lines about what is missing; ``compaction`` is its effect on the result (None: no effect)."""
    if read.missing and compaction is not None:
        yield f"compacted: {percent(read.missing_share)} of the offsets were removed; {compaction}"
    if read.starts_late and compaction is not None:
        yield f"{plural(read.starts_late, 'partition')} begin after offset 0: earlier records were deleted"
    if read.of_partitions is not None and read.partitions < read.of_partitions:
        of = plural(read.of_partitions, "partition")
        yield f"partial: {read.partitions:,} of at least {of} of __consumer_offsets: the other groups are missing"
    if read.waiting:
        yield f"{plural(read.waiting, 'commit')} after the first one of an open transaction wait: results are older"
    if read.skipped:
        by_number = sorted(read.skipped.items(), key=lambda item: int(item[0]))
        kinds = ", ".join(f"{kind} ({count:,})" for kind, count in by_number)
        yield f"{plural(sum(read.skipped.values()), 'record')} skipped, of types that no table has: {kinds}"
