"""Run jobs without Spark: the part of PySpark's DataFrame API that they use, as SQL of DuckDB.

Theory of operation. A `DataFrame` is a SELECT statement and the names of its columns; a `Column` is an expression over
the rows of one such statement, whose alias is always ``t``. Each method returns a new statement around the old one.
Nothing runs before rows are asked for. A method or function that the jobs do not use is missing, and an argument that
would change the result is refused.

Where the two engines differ, the SQL follows Spark: nulls come first in ascending order, a sum of integers is a
bigint, `max_by` returns null if the row with the highest value has null, floor and ceil return integers, and division
returns a double. A window function inside an aggregate becomes a column of a statement of its own before it.
"""

from __future__ import annotations

from kproto.spark.embedded.session import EmbeddedSession

__all__ = ["EmbeddedSession"]
