"""Sessions of both engines for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kproto.spark.embedded import EmbeddedSession
from kproto.spark.engine import SPARK, using


@contextmanager
def session_of(engine: str, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Yield a session of an engine, which is the engine of all jobs meanwhile."""
    with using(engine):
        if engine == SPARK:
            yield request.getfixturevalue("spark")
            return
        started: Any = EmbeddedSession()
        yield started
        started.stop()
