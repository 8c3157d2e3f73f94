"""Replay requests recorded from real brokers against kproto and compare the response bytes, one state per release.

Situations that a client made with requests of other APIs (members that joined, mostly) are made by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto import registry
from kproto.errors import DecodeError, UnsupportedVersion
from kproto.headers import read_request_header, read_response
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo
from tests.coordinator.broker_state import NOW_MS, new_state
from tests.fixture_files import golden

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.state import BrokerState
    from tests.fixture_files import GoldenPair

    Prepare = Callable[[BrokerState, Any], None]

RELEASES = ("0.10.2.2", "0.11.0.3", "1.1.1", "2.0.1", "2.1.1", "2.8.2", "3.9.2", "4.4.0")


def conversation(api: str, release: str) -> list[GoldenPair]:
    """Return the recorded pairs of an API and a release, in the order of the requests."""
    return sorted((pair for pair in golden(api) if release in pair.brokers), key=lambda pair: pair.brokers[release])


def recorded_state(release: str, pairs: list[GoldenPair]) -> BrokerState:
    """A broker as it was recorded: one node, one offsets partition, topics "t" and "u"."""
    state = new_state(release, topics={"t": 3, "u": 1}, settings={"offsets.topic.num.partitions": "1"}, node_count=1)
    for name, topic_id in _topic_ids(pairs).items():
        topic = state.cluster.topics[name]
        topic.topic_id = topic_id
        state.cluster._topics_by_id[topic_id] = topic
    return state


def _topic_ids(pairs: list[GoldenPair]) -> dict[str, bytes]:
    """The ids that "t" and "u" had: requests that name both do so in one order in all versions."""
    ids: dict[str, bytes] = {}
    both = [pair for pair in pairs if pair.note == "two topics"]
    if not both or both[-1].api_version < 10:
        return ids
    names = [topic.name for topic in _topics(both[-2])]
    return {name: topic.topic_id for name, topic in zip(names, _topics(both[-1]), strict=True)}


def _topics(pair: GoldenPair) -> Any:
    request = decoded_request(pair)
    return request.topics or request.groups[0].topics


def decoded_request(pair: GoldenPair) -> Any:
    """The request of a pair; None if the frame makes no sense."""
    try:
        position = read_request_header(pair.request).body_position
        return registry.codec(pair.api_key, pair.api_version).decode_request(pair.request, position)[0]
    except (DecodeError, UnsupportedVersion):
        return None


def replay(
    release: str,
    pairs: list[GoldenPair],
    state: BrokerState,
    situations: Mapping[str, Prepare],
    *,
    in_order: bool | None = None,
) -> list[str]:
    """Send the recorded requests to kproto; return the differences between its responses and the recorded ones.

    Up to 3.9 lists stand in the order of hash maps: order counts from 4.0 on, unless ``in_order`` says otherwise.
    """
    order_counts = state.coordinator.behavior.is_new_coordinator if in_order is None else in_order
    differences = []
    dispatcher = Dispatcher(state, Observations())
    for pair in pairs:
        prepare = situations.get(pair.note)
        if prepare is not None:
            prepare(state, decoded_request(pair))
        connection = Connection(dispatcher, state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
        response = connection.receive(len(pair.request).to_bytes(4, "big") + pair.request, NOW_MS)
        ours = response[4:] or None
        if not _same(pair, ours, in_order=order_counts):
            differences.append(f"{release} v{pair.api_version} {pair.note}: {_shown(pair, ours)}")
    return differences


def another_node_leads(state: BrokerState, request: Any) -> None:
    """From here on the offsets partition is led by a node that is not asked."""
    for partition in state.cluster.topics["__consumer_offsets"].partitions:
        partition.leader = 2


def _same(pair: GoldenPair, ours: bytes | None, *, in_order: bool) -> bool:
    if pair.response is None or ours is None or in_order:
        return ours == pair.response
    mine, theirs = (read_response(frame, pair.api_key, pair.api_version) for frame in (ours, pair.response))
    return bool(_sorted(mine) == _sorted(theirs))


def _sorted(value: Any) -> Any:
    """A response without the order that hash maps gave it."""
    if isinstance(value, tuple):
        items = [_sorted(item) for item in value]
        return sorted(items, key=repr) if items and all(isinstance(item, list) for item in items) else items
    return value


def _shown(pair: GoldenPair, ours: bytes | None) -> str:
    theirs = pair.response
    if ours is None or theirs is None:
        return f"ours {ours!r}, theirs {theirs!r}"
    return (
        f"ours {read_response(ours, pair.api_key, pair.api_version)}, "
        f"theirs {read_response(theirs, pair.api_key, pair.api_version)}"
    )
