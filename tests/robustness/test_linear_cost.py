"""No API costs more than in proportion to the elements of its request.

Method. For each array of each API in each version, a broker without sockets gets requests with 20, 40 and 80 elements:
existing, missing, repeated and empty ones. The steps of the broker are counted from the bytes of the request to those
of the response. Repeated and empty elements are in requests of the newest version only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kproto import registry
from kproto.generate import Module
from kproto.message import Request
from kproto.messages import APIS
from kproto.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto_server.coordinator.deletion import forget_topics
from kproto_server.handlers import HANDLED
from kproto_server.handlers.k09_offset_fetch import GROUPS_SINCE, TOPIC_IDS_SINCE
from kproto_server.releases.kafka_version import LATEST, KafkaVersion
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import commit, new_state
from tests.robustness.long_requests import Content, LongArray, existing_name, long_arrays
from tests.robustness.steps import GROWTH_MAX, SIZES, count_steps, counted, growth

API_VERSIONS = KafkaVersion.named(LATEST).api_versions
READS = frozenset({1, 2, 9, 10, 12, 15, 16, 18, 22, 23, 32, 35, 46, 60, 61, 66, 69, 74, 75})
"""API keys of requests that leave topics and groups as they are, so that the next one may have the same broker. So do
requests that do nothing here."""
OF_EARLIER_VERSIONS = (Content.EXISTING, Content.MISSING)
"""What the long arrays of earlier versions name: their elements are handled by the code of the newest version."""


def broker_with_everything() -> InMemoryBroker:
    """Return a broker with a topic and a group of each existing name; the first topic has as many partitions."""
    count = SIZES[-1]
    topics = {existing_name(index): 1 for index in range(1, count)}
    broker = InMemoryBroker(topics={existing_name(0): count, **topics})
    assert broker.state.cluster.ensure_offsets_topic(broker.clock.now_ms())
    for index in range(count):
        commit(broker.state, existing_name(index), {existing_name(index): {0: 1}})
    return broker


def steps_of_request(broker: InMemoryBroker, request: Request, version: int) -> int:
    """Return the steps of a broker for one request on a new connection."""
    pair = broker.connect()
    dispatcher = pair.connection.dispatcher
    key = type(request)._api_key, version
    endpoint = dispatcher.endpoints[key]

    data, request = pair.client.send(request, version), counted(request)

    def decode(frame: bytes, position: int, elements_max: int) -> tuple[Any, ...]:
        return (request, *endpoint.decode(frame, position, elements_max)[1:])

    dispatcher.endpoints[key] = replace(endpoint, decode=decode)
    try:
        return count_steps(lambda: pair.connection.receive(data, broker.clock.now_ms()))
    finally:
        dispatcher.endpoints[key] = endpoint
        pair.close()


def growth_of(array: LongArray, content: Content, broker: Callable[[], InMemoryBroker]) -> float:
    return growth(lambda size: steps_of_request(broker(), array.request(size, content), array.version))


def versions_that_differ(api_key: int) -> list[int]:
    """Return the oldest version of each layout of the request, and the newest version."""
    first, last = API_VERSIONS[api_key]
    found = {}
    for version in range(last, first - 1, -1):
        module = Module()
        module.add(registry.request_class(api_key), version)
        found[next(iter(module.bodies))] = version
    return sorted({*found.values(), last})


def worse_than_linear(api_key: int) -> list[str]:
    """Return the arrays of an API whose cost grows faster than their size."""
    shared = broker_with_everything()
    broker = (lambda: shared) if api_key in READS or api_key not in HANDLED else broker_with_everything
    found = []
    for version in versions_that_differ(api_key):
        for array in long_arrays(api_key, version):
            # Modules are imported, and codecs are made, with the first request.
            steps_of_request(shared, array.request(1, Content.MISSING), version)
            for content in Content if version == API_VERSIONS[api_key][1] else OF_EARLIER_VERSIONS:
                factor = growth_of(array, content, broker)
                if factor > GROWTH_MAX:  # what happens once, such as filling a cache, does not happen again
                    factor = growth_of(array, content, broker)
                if factor > GROWTH_MAX:
                    found.append(f"{array} ({content}): steps grow by {factor:.1f} with twice the elements")
    return found


@pytest.mark.parametrize("api_key", [key for key in APIS if key in API_VERSIONS], ids=lambda key: APIS[key])
def test_no_request_costs_more_than_in_proportion_to_its_elements(api_key: int) -> None:
    found = worse_than_linear(api_key)
    assert not found, "\n".join(found)


def test_the_deletion_of_topics_reads_the_groups_once() -> None:
    """It read all groups for each deleted topic: 1.5 s for 10,000 groups and 200 topics."""

    def steps(size: int) -> int:
        names = [existing_name(index) for index in range(size)]
        state = new_state(topics=dict.fromkeys(names, 1))
        for name in names:
            commit(state, name, {name: {0: 1}})
        return count_steps(lambda: forget_topics(state.coordinator, names, state.clock.now_ms()))

    assert growth(steps) < GROWTH_MAX


@pytest.mark.parametrize("version", range(TOPIC_IDS_SINCE))
def test_what_a_group_has_stored_does_not_multiply_the_cost_of_requested_topics(version: int) -> None:
    """A group's offsets are read once for a request, not once for each topic of it."""

    def steps(stored: int) -> int:
        name, group_id = existing_name(0), "group"
        broker = InMemoryBroker(topics={name: stored})
        assert broker.state.cluster.ensure_offsets_topic(broker.clock.now_ms())
        commit(broker.state, group_id, {name: dict.fromkeys(range(stored), 1)}, version=min(version, 2))
        of_topic: dict[str, Any] = {"name": name, "partition_indexes": (0,)}
        if version >= GROUPS_SINCE:
            topics = (OffsetFetchRequestTopics(**of_topic),) * SIZES[0]
            request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=topics),))
        else:
            request = OffsetFetchRequest(group_id=group_id, topics=(OffsetFetchRequestTopic(**of_topic),) * SIZES[0])
        steps_of_request(broker, request, version)
        return steps_of_request(broker, request, version)

    few = steps(stored=1)
    for stored in (60, 400):  # in a block with other groups, and in records of its own
        assert steps(stored) < 1.5 * few + 500
