"""Copy the connections of Kafka out of captures: whole requests and responses, in one capture of their own.

What lacks bytes is left out, and so is what a broker sent without a captured request.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kproto.errors import KprotoError
from kproto_server.capture.writer import CaptureFile
from kproto_server.replay.conversations import Listener, connections_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from kproto_server.capture.kafka_connections import KafkaConnections
    from kproto_server.capture.writer import CapturedConnection
    from kproto_server.replay.conversations import Conversation, Exchange


class CannotWrite(KprotoError):
    """The file cannot be written; the text is the reason."""


class Extraction(Listener):
    """A copy in progress: its `connections` read the captures.

    Raises:
        CannotWrite: the file cannot be made; also the methods of `connections` and `close`: it cannot be written.
    """

    def __init__(self, path: str, client_ids: Collection[str]) -> None:
        """Begin the copy.

        Args:
            path: the file to write, which is replaced.
            client_ids: those whose connections are copied, by the first request of each; empty: all.
        """
        self.connections: KafkaConnections = connections_of(self)
        self.connection_count: int = 0
        """Connections that are copied."""
        self.request_count: int = 0
        self.response_count: int = 0
        self.other_client_ids: set[str] = set()
        """Client ids of the connections that are not copied."""
        self._client_ids = client_ids
        with _writing():
            self._file = CaptureFile(path, lambda: self.connections.time_ns)
        self._copies: dict[int, CapturedConnection | None] = {}
        """By the number of the connection; None: it is not copied."""

    def requested(self, conversation: Conversation, exchange: Exchange) -> None:
        if conversation.number not in self._copies:
            self._copies[conversation.number] = self._begin(conversation)
        copy = self._copies[conversation.number]
        if copy is not None:
            self.request_count += 1
            with _writing():
                copy.sent(_framed(exchange.frame))

    def responded(self, conversation: Conversation, exchange: Exchange) -> None:
        copy = self._copies[conversation.number]
        if copy is not None and exchange.response is not None:
            self.response_count += 1
            with _writing():
                copy.received(_framed(exchange.response))

    def ended(self, conversation: Conversation, *, is_by_broker: bool) -> None:
        copy = self._copies.pop(conversation.number, None)
        if copy is not None:
            with _writing():
                copy.closed(by_broker=is_by_broker)

    def close(self) -> None:
        """End the file."""
        with _writing():
            self._file.close()

    def _begin(self, conversation: Conversation) -> CapturedConnection | None:
        if self._client_ids and conversation.client_id not in self._client_ids:
            self.other_client_ids.add(conversation.client_id)
            return None
        self.connection_count += 1
        with _writing():
            return self._file.connection(conversation.client, conversation.broker)


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotWrite(error.strerror or str(error)) from None


def _framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content
