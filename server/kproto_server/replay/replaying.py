"""Send the requests of a capture to a broker, as their client, and compare the responses.

Theory of operation. Requests and responses are taken in the order of the capture. A request is sent when its turn
comes, and a response is waited for when that of the capture comes: so a request never overtakes a response that came
before it, on any connection. Ids that the captured broker gave are replaced (`translation`). If a retriable error comes
in place of a captured success, the request is sent again, as its client would do.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kproto.errors import KprotoError, ProtocolError
from kproto.runtime import FAILURES
from kproto_server.capture.writer import endpoint
from kproto_server.replay.broker_connection import BrokerConnection
from kproto_server.replay.conversations import Listener
from kproto_server.replay.differing import CLOSED, NOTHING, Differing, is_transient, response_rows
from kproto_server.replay.translation import Translation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto_server.capture.writer import CapturedConnection, CaptureFile
    from kproto_server.replay.conversations import Conversation, Exchange

AGAIN_S = 0.1
"""Pause before a request is sent again; a client's retry.backoff.ms."""
ORDER_S = 0.01
"""Time that a broker has for a request before the next one is sent on another connection: it reads them in this order,
unless it is busy for longer."""


class CannotReplay(KprotoError):
    """The broker cannot be reached, or the capture cannot be written; the text is one line for the user."""


class _Replayed:
    """A connection to the broker, and its place in the capture of the replay."""

    def __init__(self, connection: BrokerConnection, captured: CapturedConnection | None) -> None:
        self.connection = connection
        self.captured = captured
        self.sent: dict[int, bytes] = {}
        """Number of a request -> its frame, until its response has come."""
        self.has_ended = False

    def send(self, frame: bytes) -> None:
        self._write(lambda captured: captured.sent(frame))
        self.connection.send(frame)

    def receive(self, correlation_id: int | None) -> bytes:
        response = self.connection.receive(correlation_id)
        self._write(lambda captured: captured.received(len(response).to_bytes(4, "big") + response))
        return response

    def end(self, *, by_broker: bool = False) -> None:
        if not self.has_ended:
            self.has_ended = True
            self.connection.close()
            self._write(lambda captured: captured.closed(by_broker=by_broker))

    def _write(self, action: Callable[[CapturedConnection], None]) -> None:
        if self.captured is not None:
            with _written():
                action(self.captured)


@contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotReplay(f"--capture: can't write the file any more: {error.strerror}") from None


class Replay(Listener):
    """Replays a capture.

    Raises:
        CannotReplay: each method: the broker cannot be reached, or the capture of the replay cannot be written.
    """

    def __init__(self, address: tuple[str, int], *, timeout_s: float, capture: CaptureFile | None = None) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._capture = capture
        self._translation = Translation()
        self._connections: dict[int, _Replayed] = {}
        self._permanent: set[str] = set()
        """APIs whose retriable errors stay: their requests are not sent again any more."""
        self._latest: _Replayed | None = None
        """The connection of the latest request."""
        self.connection_count: int = 0
        self.request_count: int = 0
        """Requests that were sent, without repetitions."""
        self.response_count: int = 0
        """Responses that were compared, or did not come."""
        self.transient_count: int = 0
        """Responses of the capture with a retriable error, which are not compared."""
        self.skipped_count: int = 0
        """Requests behind the end of their connection, which were not sent."""
        self.differing: list[Differing] = []

    def requested(self, conversation: Conversation, exchange: Exchange) -> None:
        replayed = self._replayed(conversation)
        if replayed.has_ended:
            self.skipped_count += 1
            return
        before = self._latest
        if before is not None and before is not replayed and before.sent and not before.has_ended:
            before.connection.wait_readable(ORDER_S)
        self._latest = replayed
        frame = len(exchange.frame).to_bytes(4, "big") + exchange.frame
        if exchange.header is not None:
            with suppress(ProtocolError, *FAILURES):  # a request with another layout is sent as it is
                frame = self._translation.translated(conversation.number, exchange.frame, exchange.header)
        self.request_count += 1
        if exchange.has_response:
            replayed.sent[exchange.number] = frame
        try:
            replayed.send(frame)
        except OSError:
            replayed.end(by_broker=True)

    def responded(self, conversation: Conversation, exchange: Exchange) -> None:
        replayed = self._replayed(conversation)
        frame = replayed.sent.pop(exchange.number, None)
        assert exchange.response is not None, "it has come"
        if frame is None or (replayed.has_ended and exchange.header is None):
            return
        captured = exchange.decoded(exchange.response)
        try:
            response = replayed.receive(exchange.correlation_id)
            if not is_transient(captured):
                response = self._without_transient(replayed, exchange, frame, response)
        except OSError as error:
            text = NOTHING if isinstance(error, TimeoutError) else CLOSED
            replayed.end(by_broker=True)
            self.response_count += 1
            self._differs(conversation, exchange, (("", "a response", text),))
            return
        found = exchange.decoded(response)
        if captured is not None and found is not None:
            self._translation.learn(conversation.number, captured, found)
        if is_transient(captured):
            self.transient_count += 1
            return
        self.response_count += 1
        self._differs(conversation, exchange, response_rows(exchange, exchange.response, response))

    def _without_transient(self, replayed: _Replayed, exchange: Exchange, frame: bytes, response: bytes) -> bytes:
        """Send a request again until its response has no retriable error, or has had one for too long.

        Raises:
            OSError: the connection is closed, or too slow.
        """
        deadline = time.monotonic() + self._timeout_s
        while is_transient(exchange.decoded(response)) and exchange.name not in self._permanent:
            if time.monotonic() > deadline:
                self._permanent.add(exchange.name)
                break
            time.sleep(AGAIN_S)
            replayed.send(frame)
            response = replayed.receive(exchange.correlation_id)
        return response

    def ended(self, conversation: Conversation, *, is_by_broker: bool) -> None:
        replayed = self._connections.pop(conversation.number, None)
        if replayed is not None:
            replayed.end()

    def close(self) -> None:
        """Close all connections, and the capture."""
        try:
            for replayed in self._connections.values():
                replayed.end()
        finally:
            if self._capture is not None:
                with _written():
                    self._capture.close()

    def _replayed(self, conversation: Conversation) -> _Replayed:
        found = self._connections.get(conversation.number)
        if found is None:
            captured = None
            try:
                connection = BrokerConnection(self._address, self._timeout_s)
                ends = () if self._capture is None else connection.ends()
            except OSError as error:
                host, port = self._address
                raise CannotReplay(f"can't connect to {host}:{port}: {error.strerror or error}") from None
            if self._capture is not None:
                with _written():
                    captured = self._capture.connection(*(endpoint(*end) for end in ends))
            found = self._connections[conversation.number] = _Replayed(connection, captured)
            self.connection_count += 1
        return found

    def _differs(self, conversation: Conversation, exchange: Exchange, rows: tuple[tuple[str, str, str], ...]) -> None:
        if rows:
            differing = Differing(conversation.number, conversation.client_id, exchange.number, exchange.name, rows)
            self.differing.append(differing)
