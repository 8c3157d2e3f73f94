"""confluent-kafka's own methods of a consumer whose class overrides them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import confluent_kafka


class ConfluentMethods:
    """An object whose methods are confluent-kafka's own methods of a consumer.

    It does not keep the consumer alive: a consumer that the user drops is closed at once instead of by a later garbage
    collection, until which librdkafka would keep its membership.
    """

    def __init__(self, consumer: confluent_kafka.Consumer) -> None:
        self._find: Callable[[], confluent_kafka.Consumer | None] = weakref.ref(consumer)

    @property
    def as_consumer(self) -> confluent_kafka.Consumer:
        """This object, for functions that take a consumer."""
        return cast("confluent_kafka.Consumer", self)

    def __getattr__(self, name: str) -> Any:
        return getattr(confluent_kafka.Consumer, name).__get__(self._find())

    @contextmanager
    def held(self, consumer: confluent_kafka.Consumer) -> Iterator[None]:
        """Keep the consumer alive: the garbage collector clears weak references before it calls `__del__`."""
        weak, self._find = self._find, lambda: consumer
        try:
            yield
        finally:
            self._find = weak
