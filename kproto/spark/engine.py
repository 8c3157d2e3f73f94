"""The engine that runs the jobs: PySpark, or `kproto.spark.embedded`, which has the part of its API that they use.

The jobs are functions from DataFrames to DataFrames, each written once. `F` and `Window` are PySpark's, or those of the
embedded engine after `use(EMBEDDED)`. The choice is one of the process: DataFrames of two engines do not mix.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Window
    from pyspark.sql import functions as F

    __all__ = ["EMBEDDED", "SPARK", "F", "Window", "is_embedded", "use", "using"]

SPARK, EMBEDDED = "spark", "embedded"
_MODULES = {
    SPARK: {"F": ("pyspark.sql.functions", None), "Window": ("pyspark.sql", "Window")},
    EMBEDDED: {"F": ("kproto.spark.embedded.functions", None), "Window": ("kproto.spark.embedded.window", "Window")},
}
_chosen = SPARK


def use(engine: str) -> None:
    """Choose the engine of this process."""
    global _chosen
    assert engine in _MODULES
    _chosen = engine


@contextmanager
def using(engine: str) -> Iterator[None]:
    """Choose an engine; at the end, choose the one before again."""
    before = _chosen
    use(engine)
    try:
        yield
    finally:
        use(before)


def is_embedded() -> bool:
    return _chosen == EMBEDDED


class _OfEngine:
    """Forwards to an object of the chosen engine, which is imported when it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        module, name = _MODULES[_chosen][self._name]
        found = import_module(module)
        return getattr(found if name is None else getattr(found, name), attribute)


if not TYPE_CHECKING:
    F, Window = _OfEngine("F"), _OfEngine("Window")
