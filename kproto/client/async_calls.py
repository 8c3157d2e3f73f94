"""The calls of an async consumer in the thread that polls, and those of confluent-kafka's methods that only query."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from confluent_kafka import TopicPartition

from kproto.client.background_polls import BackgroundPolls

T = TypeVar("T")


class AsyncCalls:
    """The base of `kproto.client.aio.Consumer`.

    Cancellation:
        One call at a time runs, in the thread that polls. A call that is cancelled while it waits for its turn has no
        effect. A call that runs is not interrupted: it completes and returns, and the cancellation takes effect
        afterwards.
    """

    def __init__(self, polls: BackgroundPolls) -> None:
        self._polls = polls
        self._consumer = polls.consumer
        self._turn = anyio.Lock()

    async def _call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function in the thread that polls, between two polls.

        Cancellation:
            As of the class: the lock is only released when the function has ended.
        """
        async with self._turn:
            result: Future[T] = Future()
            ended = anyio.Event()
            wake = partial(_event_loop(), ended.set)

            def call() -> None:
                try:
                    result.set_result(function(*args, **kwargs))
                except BaseException as error:  # noqa: BLE001  # the caller gets it
                    result.set_exception(error)
                with suppress(RuntimeError):  # the event loop is closed
                    wake()

            self._polls.submit(call)
            with anyio.CancelScope(shield=True):
                await ended.wait()
            return result.result()

    async def _wait(self, count: int) -> None:
        """Wait until a request of this many records can be met.

        Cancellation:
            Has no effect on the records.
        """
        event = anyio.Event()
        self._polls.start()
        with self._polls.waiting(count, partial(_event_loop(), event.set)):
            await event.wait()

    async def assignment(self) -> list[TopicPartition]:
        """As confluent-kafka's `assignment`.

        Cancellation:
            As of the class.
        """
        return await self._call(self._consumer.assignment)

    async def committed(self, partitions: list[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
        """As confluent-kafka's `committed`.

        Cancellation:
            As of the class.
        """
        given = {} if timeout is None else {"timeout": timeout}
        return await self._call(self._consumer.committed, partitions, **given)

    async def consumer_group_metadata(self) -> object:
        """Return what a transactional producer's `send_offsets_to_transaction` needs. Its offsets: of `position`.

        Cancellation:
            As of the class.
        """
        return await self._call(self._consumer.consumer_group_metadata)

    async def memberid(self) -> str | None:
        """As confluent-kafka's `memberid`.

        Cancellation:
            As of the class.
        """
        return await self._call(self._consumer.memberid)

    async def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None = None, cached: bool = False
    ) -> tuple[int, int]:
        """As confluent-kafka's `get_watermark_offsets`.

        Cancellation:
            As of the class.
        """
        given = {} if timeout is None else {"timeout": timeout}
        return await self._call(self._consumer.get_watermark_offsets, partition, cached=cached, **given)

    async def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float | None = None
    ) -> list[TopicPartition]:
        """As confluent-kafka's `offsets_for_times`.

        Cancellation:
            As of the class.
        """
        given = {} if timeout is None else {"timeout": timeout}
        return await self._call(self._consumer.offsets_for_times, partitions, **given)

    async def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """As confluent-kafka's `list_topics`.

        Cancellation:
            As of the class.
        """
        given = {} if topic is None else {"topic": topic}
        return await to_thread.run_sync(partial(self._consumer.list_topics, **given, timeout=timeout))

    async def cluster_id(self, timeout: float = -1) -> str:
        """As confluent-kafka's `cluster_id`.

        Cancellation:
            As of the class.
        """
        return await to_thread.run_sync(partial(self._consumer.cluster_id, timeout=timeout))

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """As confluent-kafka's `set_sasl_credentials`.

        Cancellation:
            As of the class.
        """
        await self._call(self._consumer.set_sasl_credentials, username, password)


def _event_loop() -> Callable[[Callable[[], object]], object]:
    """Return a function that runs another one in the current event loop, for any thread."""
    trio = sys.modules.get("trio")
    if trio is not None:
        try:
            return trio.lowlevel.current_trio_token().run_sync_soon  # type: ignore[no-any-return]
        except RuntimeError:
            pass
    return asyncio.get_running_loop().call_soon_threadsafe
