"""The advice of the retention audit, and how sure it is: what the input lacks may have needed more."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.spark.words import gaps, plural

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kproto.spark.input import Coverage


class Advice(NamedTuple):
    """The summary of a retention audit."""

    current_minutes: int
    recommended_minutes: int
    """The offsets.retention.minutes that is enough for all groups that have offsets."""
    over: int
    """Groups with offsets that requested more than the current setting."""
    gone: int
    """Groups without offsets that requested more than the recommended setting."""


def summarize(audit: DataFrame, current_minutes: int) -> Advice:
    """Return the advice of rows of `RETENTION_AUDIT`."""
    from kproto.spark.engine import F

    asked = audit.where(F.col("recommended_minutes") > current_minutes)
    rows = asked.groupBy("has_offsets", "recommended_minutes").count().collect()
    alive = {row["recommended_minutes"]: row["count"] for row in rows if row["has_offsets"]}
    recommended = max(alive, default=current_minutes)
    more = [row for row in rows if not row["has_offsets"] and row["recommended_minutes"] > recommended]
    return Advice(current_minutes, recommended, sum(alive.values()), sum(row["count"] for row in more))


def sentence(advice: Advice, read: Coverage) -> tuple[str, bool]:
    """Return the advice in words, and whether the current setting is certainly enough."""
    here = f"{advice.current_minutes:,}"
    lacks = "; ".join(gaps(read))
    if advice.over:
        need = "needs" if advice.over == 1 else "need"
        value = f"{'at least ' if lacks else ''}{advice.recommended_minutes:,}"
        text = (
            f"{plural(advice.over, 'group')} {need} a longer retention than {here} minutes: "
            f"set offsets.retention.minutes to {value}"
        )
    elif lacks:
        text = f"offsets.retention.minutes = {here} is enough for the requests in this input; groups may need more"
    else:
        text = f"offsets.retention.minutes = {here} is enough for every group"
    if lacks:
        text += f" ({lacks})"
    if advice.gone:
        text += f"; {plural(advice.gone, 'group')} without offsets requested more"
    return text, not (advice.over or lacks)
