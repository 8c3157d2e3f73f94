"""Whole recordings of a broker asked again of ours, topics and all: one state a broker, requests in their order.

What can't be equal is made so: ports, cluster ids, topic ids (only whether there is one is compared), and the order of
hash maps. Where a recording has its broker's topic ids, ours take them, so that requests by id find their topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.declaration import ZERO_UUID, Struct
from kproto.headers import read_response
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo
from tests.coordinator.broker_state import NOW_MS, new_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kproto_server.state import BrokerState
    from tests.fixture_files import GoldenPair

VARYING = frozenset({"port", "cluster_id", "unknown_tagged_fields"})

NOT_OURS = frozenset({"segment.index.bytes", "advertised.listeners"})
"""Configs that the recorded brokers were started with: kproto has no setting for the one, and other ports."""


class Difference(NamedTuple):
    """A pair whose recorded response differs from kproto's."""

    pair: GoldenPair
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        returned = f"{self.pair.api} v{self.pair.api_version} {self.pair.note}"
        return f"{returned}:\n  ours   {self.ours}\n  theirs {self.theirs}"


def fresh_state(release: str, settings: Mapping[str, str], node_count: int = 1) -> BrokerState:
    """A broker, or several, without any topic."""
    state = new_state(release, topics={"only": 1}, settings=settings, node_count=node_count, with_offsets_topic=False)
    state.cluster.delete_topic("only")
    return state


def differences(
    pairs: Iterable[GoldenPair],
    state: BrokerState,
    prepare: Callable[[BrokerState, GoldenPair], None] = lambda state, pair: None,
) -> Iterator[Difference]:
    """Send the recorded requests to kproto; yield the pairs whose responses differ.

    ``prepare`` is called before each request, for what the recording lacks.
    """
    for pair in pairs:
        prepare(state, pair)
        yield from difference(pair, state, 1)


def difference(pair: GoldenPair, state: BrokerState, node_id: int) -> Iterator[Difference]:
    """Send a recorded request to one of kproto's brokers; yield once if the response differs."""
    connection = Connection(
        Dispatcher(state, Observations()), state.cluster.nodes[node_id], ConnectionInfo("/127.0.0.1")
    )
    response = connection.receive(len(pair.request).to_bytes(4, "big") + pair.request, NOW_MS)
    waited = connection.delayed is not None
    if waited:
        response = connection.resume(NOW_MS)
    ours, theirs = (_plain(pair, frame) for frame in (response[4:] or None, pair.response))
    if ours != theirs:
        yield Difference(pair, ours, theirs)
    elif pair.waited not in (None, waited):
        yield Difference(pair, f"waited: {waited}", f"waited: {pair.waited}")


def response_of(pair: GoldenPair) -> Any:
    """The recorded response."""
    assert pair.response is not None
    return read_response(pair.response, pair.api_key, pair.api_version)[1]


def _plain(pair: GoldenPair, frame: bytes | None) -> Any:
    """A response as comparable values; None: the connection was closed."""
    return None if frame is None else comparable(read_response(frame, pair.api_key, pair.api_version)[1])


def comparable(value: Any) -> Any:
    if isinstance(value, Struct):
        fields = ((name, getattr(value, name)) for name in value._fields if name not in VARYING)  # type: ignore[attr-defined]
        return {name: _has_id(inner) if name == "topic_id" else comparable(inner) for name, inner in fields}
    if isinstance(value, tuple):
        kept = (item for item in value if getattr(item, "name", None) not in NOT_OURS)
        return sorted((comparable(item) for item in kept), key=repr)
    return value


def _has_id(topic_id: bytes) -> str:
    return "no id" if topic_id == ZERO_UUID else "an id"


def take_topic_ids(state: BrokerState, response: Any) -> None:
    """Give kproto's topics the ids that a response has."""
    for returned in _structs(response):
        name, topic_id = getattr(returned, "name", None), getattr(returned, "topic_id", ZERO_UUID)
        topic = state.cluster.topics.get(name or "")
        if topic is not None and topic_id != ZERO_UUID:
            state.cluster._topics_by_id.pop(topic.topic_id, None)
            topic.topic_id = topic_id
            state.cluster._topics_by_id[topic_id] = topic


def _structs(value: Any) -> Iterator[Any]:
    if isinstance(value, Struct):
        yield value
    if isinstance(value, tuple):
        for item in value:
            yield from _structs(item)
