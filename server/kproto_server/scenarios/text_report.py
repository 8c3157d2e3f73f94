"""The results of failure scenarios as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.scenarios.runner import PartitionResult, ScenarioResult

HEADINGS = ("scenario", "partition", "expected start", "actual start", "skipped", "read again", "result")


def render(all_results: Iterable[ScenarioResult]) -> str:
    """Return the table, followed by the steps of each result."""
    results = list(all_results)
    rows = [HEADINGS, *(row for result in results for row in _rows(result))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    for result in results:
        lines += ["", *_details(result)]
    return "\n".join(lines) + "\n"


def _rows(result: ScenarioResult) -> Iterator[tuple[str, ...]]:
    for partition in result.partitions:
        yield (
            result.scenario.name,
            str(partition.partition),
            str(partition.expected_start),
            format_start(partition),
            str(partition.skipped or "-"),
            str(partition.read_again or "-"),
            format_verdict(partition),
        )


def format_verdict(partition: PartitionResult) -> str:
    """Return the result of one partition in a word or two."""
    if partition.crashed:
        return "crashed"
    if partition.actual_start is None:
        return "not read"
    return "skipped" if partition.skipped else "read again" if partition.read_again else "nothing lost"


def format_start(partition: PartitionResult) -> str:
    """Return the actual start position in words."""
    if partition.actual_start is None:
        return "none"
    if partition.log_start == partition.log_end:
        return str(partition.actual_start)
    ends = {partition.log_start: " (the beginning)", partition.log_end: " (the end)"}
    return f"{partition.actual_start}{ends.get(partition.actual_start, '')}"


def _details(result: ScenarioResult) -> Iterator[str]:
    yield f"{result.scenario.name}: {result.scenario.description}"
    for each in result.partitions:
        yield f"  partition {each.partition}, {each.log_start} to {each.log_end}: " + "; ".join(each.steps)
    ending = format_ending(result)
    if ending:
        yield f"  {ending}"


def format_ending(result: ScenarioResult) -> str:
    """Return how the client ended, or an empty string if it read all records."""
    if result.timed_out:
        return "the client was stopped at the timeout before it had read all records"
    if result.exit_code is None:
        return ""
    last_line = f": {result.last_error_line}" if result.last_error_line else ""
    if result.exit_code < 0:
        return f"the client crashed: signal {-result.exit_code}{last_line}"
    verb = "crashed: exit code" if result.has_crashed else "exited with code"
    return f"the client {verb} {result.exit_code}{last_line}"
