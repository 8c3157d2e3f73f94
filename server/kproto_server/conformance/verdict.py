"""Grade what a client under test did in one case. Pure: what was seen comes in, a verdict goes out."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.conformance.cases import ClientCase

STALL_S = 10.0
"""A client that takes so much longer than without faults stalls."""


class Grade(StrEnum):
    """How a client passes a case, best first."""

    PASS = "pass"  # noqa: S105 - no password
    NOT_OFFERED = "not offered"
    """The client never sent a request that the case is about."""
    DEGRADED = "degraded"
    """It recovers, but writes records twice or stalls."""
    FAIL = "fail"
    """It loses records, hangs, or ends."""


ORDER: dict[Grade, int] = {grade: place for place, grade in enumerate(Grade)}


class Seen(NamedTuple):
    """What was seen of a client in one case."""

    expected: int
    """Records that it had to copy."""
    missing: int = 0
    """Records that are not in the output topic."""
    lost: int = 0
    """Of these, records behind which the group has committed: no member reads them again."""
    wrong: int = 0
    """Copies of records that a consumer does not return: those of aborted transactions."""
    repeated: int = 0
    """Copies beyond the first one of a record."""
    is_committed: bool = True
    """Whether the group has committed the end of each partition."""
    fired: int = 1
    """How often the case's rules have acted; 1 for a case without rules."""
    seconds: float = 0.0
    """From the client's start until all was copied and committed, or until the end of the wait."""
    exit_code: int | None = None
    """None: the client ran until it got SIGTERM."""
    last_error_line: str = ""
    requests: Sequence[str] = ()
    """The first requests from the fault on, a line each."""


class Verdict(NamedTuple):
    """The grade of a client in one case, and why."""

    case: ClientCase
    grade: Grade
    reason: str
    """A phrase; empty: nothing is to be said."""
    seen: Seen


def verdict_on(case: ClientCase, seen: Seen, no_fault_s: float) -> Verdict:
    """Return the verdict; ``no_fault_s``: how long the same client takes without faults."""
    grade, reason = _graded(seen, no_fault_s)
    return Verdict(case, grade, reason, seen)


def _graded(seen: Seen, no_fault_s: float) -> tuple[Grade, str]:
    if seen.lost:
        return Grade.FAIL, f"{_records(seen.lost)} lost: committed, and not written"
    if seen.wrong:
        return Grade.FAIL, f"{_records(seen.wrong)} of aborted transactions written"
    if seen.exit_code is not None:
        last = f": {seen.last_error_line}" if seen.last_error_line else ""
        return Grade.FAIL, f"the client ended with exit code {seen.exit_code}{last}"
    if seen.missing:
        return (
            Grade.FAIL,
            f"the client hangs: {_records(seen.missing)} of {seen.expected} not written after {seen.seconds:.0f} s",
        )
    if not seen.is_committed:
        return Grade.FAIL, f"the client hangs: its last offsets are not committed after {seen.seconds:.0f} s"
    if not seen.fired:
        return Grade.NOT_OFFERED, "the client sent no such request"
    if seen.repeated:
        return Grade.DEGRADED, f"{_records(seen.repeated)} written twice"
    slower_s = seen.seconds - no_fault_s
    if slower_s > STALL_S:
        return Grade.DEGRADED, f"stalled: {slower_s:.0f} s longer than without the fault"
    return Grade.PASS, ""


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"
