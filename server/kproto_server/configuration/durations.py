"""Durations as Java reads them (ISO 8601)."""

from __future__ import annotations

import re

DAY_S, HOUR_S, MINUTE_S = 86_400, 3_600, 60
SECONDS_MAX = 2**63 - 1
DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]{1,19})D)?"
    r"(T(?:([-+]?[0-9]{1,19})H)?(?:([-+]?[0-9]{1,19})M)?(?:([-+]?[0-9]{1,19})(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)


def duration_ms(text: str) -> int | None:
    """Return a duration in milliseconds, rounded down; None if the text is none."""
    found = DURATION.fullmatch(text)
    if found is None or (found[3] or "").upper() == "T":
        return None
    sign, days, _, hours, minutes, seconds, fraction = found.groups()
    if not (days or hours or minutes or seconds):
        return None
    total_s = int(days or 0) * DAY_S + int(hours or 0) * HOUR_S + int(minutes or 0) * MINUTE_S + int(seconds or 0)
    total_ns = total_s * 10**9 + int((fraction or "").ljust(9, "0")) * (-1 if (seconds or "").startswith("-") else 1)
    if abs(total_s) > SECONDS_MAX:
        return None
    return (-total_ns if sign == "-" else total_ns) // 10**6
