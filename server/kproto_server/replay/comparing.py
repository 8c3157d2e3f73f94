"""Compare the responses in two captures of the same client, for example with two brokers.

Theory of operation. The connections of one client id are compared in the order in which they began, and the requests of
two connections by API and version, as a diff compares lines: a client polls and heartbeats as often as time allows. The
first connection's requests that the other one does not have are counted. A diff takes quadratic time, so it compares
the kinds of requests that are rare; between two of these, the requests of a frequent kind are compared in their order.
"""

from __future__ import annotations

from collections import Counter, deque
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from kproto_server.replay.conversations import Listener, read
from kproto_server.replay.differing import Differing, is_transient, response_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from kproto_server.capture.kafka_connections import KafkaConnections
    from kproto_server.replay.conversations import Conversation, Exchange

RARE_MAX = 500
"""Requests of a rare kind on two connections together: a diff of ten such kinds takes a second."""


class Responses(Listener):
    """The responses of one capture, by client id and connection."""

    def __init__(self, stream: BinaryIO) -> None:
        """Read a capture; its responses stay in memory.

        Raises:
            BadCapture: it is no capture, or damaged.
        """
        self._by_number: dict[int, list[Exchange]] = {}
        self._client_ids: dict[int, str] = {}
        self.read_from: KafkaConnections = read(stream, self)

    def responded(self, conversation: Conversation, exchange: Exchange) -> None:
        self._by_number.setdefault(conversation.number, []).append(exchange)
        self._client_ids[conversation.number] = conversation.client_id

    @property
    def response_count(self) -> int:
        return sum(map(len, self._by_number.values()))

    def connections(self) -> dict[tuple[str, int], tuple[int, list[Exchange]]]:
        """Return, by client id and count of its connections, the number of a connection and its exchanges."""
        found: dict[tuple[str, int], tuple[int, list[Exchange]]] = {}
        counts: dict[str, int] = {}
        for number, exchanges in sorted(self._by_number.items()):
            client_id = self._client_ids[number]
            counts[client_id] = counts.get(client_id, 0) + 1
            found[client_id, counts[client_id]] = number, exchanges
        return found


class Comparison:
    """The differences between two captures."""

    def __init__(self, one: Responses, other: Responses) -> None:
        self.compared_count: int = 0
        """Responses that both have."""
        self.unmatched_count: int = 0
        """Responses that one of them has."""
        self.transient_count: int = 0
        """Responses of which one has a retriable error; they are not compared."""
        self.differing: list[Differing] = []
        others = other.connections()
        for key, (number, exchanges) in one.connections().items():
            self._compare(key[0], number, exchanges, others.get(key, (0, []))[1])
        self.unmatched_count = (
            one.response_count + other.response_count - 2 * (self.compared_count + self.transient_count)
        )

    def _compare(self, client_id: str, number: int, one: list[Exchange], other: list[Exchange]) -> None:
        for first, second in _matched(_kinds(one), _kinds(other)):
            self._compare_responses(client_id, number, one[first], other[second])

    def _compare_responses(self, client_id: str, number: int, one: Exchange, other: Exchange) -> None:
        assert one.response is not None, "it has come"
        assert other.response is not None, "it has come"
        if is_transient(one.decoded(one.response)) or is_transient(other.decoded(other.response)):
            self.transient_count += 1
            return
        self.compared_count += 1
        rows = response_rows(one, one.response, other.response)
        if rows:
            self.differing.append(Differing(number, client_id, one.number, one.name, rows))


Kind = tuple[int, int] | None
"""API key and version of a request; None: it has no known header."""


def _kinds(exchanges: list[Exchange]) -> list[Kind]:
    return [each.header and each.header[:2] for each in exchanges]


def _matched(one: list[Kind], other: list[Kind]) -> Iterator[tuple[int, int]]:
    """Yield the indexes of the requests of two connections that are the same, in order."""
    counts = Counter(one) + Counter(other)
    rare, rare_of_other = ([at for at, kind in enumerate(each) if counts[kind] <= RARE_MAX] for each in (one, other))
    matcher = SequenceMatcher(None, [one[at] for at in rare], [other[at] for at in rare_of_other], autojunk=False)
    start, start_of_other = 0, 0
    for first, second, size in matcher.get_matching_blocks():
        ends = zip(rare[first : first + size], rare_of_other[second : second + size], strict=True)
        for end, end_of_other in ends if size else [(len(one), len(other))]:
            frequent: dict[Kind, deque[int]] = {}
            for at in range(start_of_other, end_of_other):
                frequent.setdefault(other[at], deque()).append(at)
            for at in range(start, end):
                if counts[one[at]] > RARE_MAX and (found := frequent.get(one[at])):
                    yield at, found.popleft()
            if size:
                yield end, end_of_other
            start, start_of_other = end + 1, end_of_other + 1
