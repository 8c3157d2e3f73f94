"""confluent-kafka's own methods of a consumer whose class overrides them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import confluent_kafka
from confluent_kafka import Message

CONSUME_MAX = 1_000_000
"""Of confluent-kafka."""
CONSUME_MOVES_POSITIONS = confluent_kafka.libversion()[1] < 0x020D02FF
"""Whether librdkafka's consume moves the position of a partition beyond the offset of an error, such as the end of the
partition: a commit would skip the next record. Its poll does not."""


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

    if CONSUME_MOVES_POSITIONS:

        def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
            if not isinstance(num_messages, int) or not 0 < num_messages <= CONSUME_MAX:  # refused
                return cast("list[Message]", self.__getattr__("consume")(num_messages, timeout))
            messages: list[Message] = []
            while len(messages) < num_messages:
                message = self.as_consumer.poll(0 if messages else timeout)
                if message is None:
                    break
                messages.append(message)
            return messages

    @contextmanager
    def held(self, consumer: confluent_kafka.Consumer) -> Iterator[None]:
        """Keep the consumer alive: the garbage collector clears weak references before it calls `__del__`."""
        weak, self._find = self._find, lambda: consumer
        try:
            yield
        finally:
            self._find = weak
