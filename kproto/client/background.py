"""Work that needs brokers and never waits for them."""

from __future__ import annotations

import time
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeAlias, TypeVar

from confluent_kafka import KafkaError, KafkaException

T = TypeVar("T")
Steps: TypeAlias = Generator[Future[Any] | None, Any, T]
"""Yields a future and gets its result, or yields None to continue at the next `advance`."""


class Background(Generic[T]):
    """A generator that `advance` continues as far as it can without waiting.

    Args:
        steps: the work; it is closed when the time limit is exceeded.
        limit_s: the time limit of the whole work.
    """

    def __init__(self, steps: Steps[T], limit_s: float) -> None:
        self._steps = steps
        self._limit_s = limit_s
        self._deadline = time.monotonic() + limit_s
        self._future: Future[Any] | None = None
        self.result: T

    def advance(self) -> bool:
        """Continue; return whether the work is complete and `result` is set.

        Raises:
            KafkaException: the work failed, or exceeded its time limit.
        """
        while self._future is None or self._future.done():
            future, self._future = self._future, None
            try:
                error = None if future is None else future.exception()
                if error is not None:
                    self._future = self._steps.throw(error)
                else:
                    self._future = self._steps.send(None if future is None else future.result())
            except StopIteration as stop:
                self.result = stop.value
                return True
            if self._future is None:
                break
        if time.monotonic() > self._deadline:
            self.close()
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"not complete within {self._limit_s:.0f} s"))
        return False

    def close(self) -> None:
        """Give the work up."""
        self._steps.close()
