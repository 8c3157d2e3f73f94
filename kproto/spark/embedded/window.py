"""The windows of window functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kproto.spark.embedded.column import Column, Ordering, named

if TYPE_CHECKING:
    from collections.abc import Sequence

UNBOUNDED: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """Parts of a window, each as SQL."""

    partition: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    rows: str = ""

    @property
    def sql(self) -> str:
        partition = f"PARTITION BY {', '.join(self.partition)}" if self.partition else ""
        order = f"ORDER BY {', '.join(self.order)}" if self.order else ""
        return " ".join(part for part in (partition, order, self.rows) if part)

    def partitionBy(self, *columns: str | Column) -> WindowSpec:
        return replace(self, partition=tuple(named(column).sql for column in columns))

    def orderBy(self, *columns: str | Column | Ordering) -> WindowSpec:
        return replace(self, order=tuple(orders(columns)))

    def rowsBetween(self, start: int, end: int) -> WindowSpec:
        return replace(self, rows=f"ROWS BETWEEN {_bound(start)} AND {_bound(end)}")


class Window:
    """PySpark's entry to windows."""

    unboundedPreceding: int = -UNBOUNDED
    unboundedFollowing: int = UNBOUNDED

    @staticmethod
    def partitionBy(*columns: str | Column) -> WindowSpec:
        return WindowSpec().partitionBy(*columns)

    @staticmethod
    def orderBy(*columns: str | Column | Ordering) -> WindowSpec:
        return WindowSpec().orderBy(*columns)


def orders(columns: Sequence[str | Column | Ordering]) -> list[str]:
    """Return what follows ORDER BY; as in Spark, nulls come first in ascending order."""
    return [column.sql if isinstance(column, Ordering) else named(column).asc().sql for column in columns]


def _bound(rows: int) -> str:
    if abs(rows) == UNBOUNDED:
        return f"UNBOUNDED {'PRECEDING' if rows < 0 else 'FOLLOWING'}"
    return "CURRENT ROW" if rows == 0 else f"{abs(rows)} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"
