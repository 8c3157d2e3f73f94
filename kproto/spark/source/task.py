"""The tasks of Spark: each reads some ranges."""

from __future__ import annotations

import gc
from functools import cache
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.logs.ranges import OffsetRange
    from kproto.spark.source.plan import Part


class Task(InputPartition):
    """The ranges that one Spark task reads, of one or more partitions."""

    def __init__(self, ranges: tuple[OffsetRange, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"Task({self.ranges!r})"


def tasks_of(parts: Iterable[Part], task_bytes: int) -> list[Task]:
    """Combine parts, in order, to tasks of about ``task_bytes``.

    There is always one task: of an empty list Spark makes a task of its own, which has no ranges.
    """
    tasks: list[Task] = []
    ranges: list[OffsetRange] = []
    size = 0
    for part in parts:
        if ranges and size + part.size > task_bytes:
            tasks.append(Task(tuple(ranges)))
            ranges, size = [], 0
        ranges.append(part.range)
        size += part.size
    return [*tasks, Task(tuple(ranges))] if ranges or not tasks else tasks


@cache
def keep_modules() -> None:
    """Leave what this process has, which is mostly the code of modules, out of garbage collections from now on.

    A worker of Spark collects garbage after each task, and would visit some hundred thousand objects that stay.
    """
    gc.freeze()
