"""What a client did about accidents, as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.scenarios.lab import Findings, Outcome

HEAD = ("accident", "partition", "should go on at", "went to", "skipped", "read again")


def render(all_findings: Iterable[Findings]) -> str:
    """Return the table, and under it how each client got there."""
    found = list(all_findings)
    rows = [HEAD, *(row for findings in found for row in _rows(findings))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    for findings in found:
        lines += ["", *_story(findings)]
    return "\n".join(lines) + "\n"


def _rows(findings: Findings) -> Iterator[tuple[str, ...]]:
    for outcome in findings.outcomes:
        yield (
            findings.accident.name,
            str(outcome.partition),
            str(outcome.resume_at),
            went_to(outcome),
            str(outcome.skipped or "-"),
            str(outcome.repeated or "-"),
        )


def went_to(outcome: Outcome) -> str:
    """Where a consumer went, in words."""
    if outcome.went_to is None:
        return "nowhere"
    if outcome.log_start == outcome.log_end:
        return str(outcome.went_to)
    ends = {outcome.log_start: " (the beginning)", outcome.log_end: " (the end)"}
    return f"{outcome.went_to}{ends.get(outcome.went_to, '')}"


def _story(findings: Findings) -> Iterator[str]:
    yield f"{findings.accident.name}: {findings.accident.what}"
    for outcome in findings.outcomes:
        yield f"  partition {outcome.partition}, {outcome.log_start} to {outcome.log_end}: " + "; ".join(outcome.steps)
    ending = how_it_ended(findings)
    if ending:
        yield f"  {ending}"


def how_it_ended(findings: Findings) -> str:
    """Say how the client has ended, if it was not stopped."""
    if findings.timed_out:
        return "it was stopped, as it did not read to the end"
    if findings.exit_code is None:
        return ""
    words = f": {findings.last_words}" if findings.last_words else ""
    return f"it ended by itself with exit code {findings.exit_code}{words}"
