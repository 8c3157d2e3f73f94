"""The fault rules of a running broker: how they come into the way of requests.

Theory of operation. A connection asks `Dispatcher.endpoints` for the endpoint of each request. While there are rules,
this table is another one (`_FaultyEndpoints`): its endpoints are those of the broker, but the handlers of the APIs and
versions that some rule may act on ask the rules first. Rules about commits also empty the commit cache, which would
respond without a handler, and end that commits share a sync: a rule may delay any of them. Without rules, the
dispatcher is as if this module did not exist.

The oldest rule that acts on a request is the only one that does. `Rule.acts` counts requests and asks for the random
number of `probability` in the order of the requests, so that a test with one connection has the same result each time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kproto import registry
from kproto_server import handlers
from kproto_server.connection.dispatcher import Endpoints
from kproto_server.faults.actions import Faulty, act
from kproto_server.faults.changes import Leaders
from kproto_server.faults.rule import METADATA, checked, selection_of
from kproto_server.faults.rules import Asked, Rules
from kproto_server.requests.endpoint import perform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto.message import Request
    from kproto_server.connection.dispatcher import Dispatcher
    from kproto_server.deferred import Result
    from kproto_server.faults.checked_rule import Checked
    from kproto_server.faults.rules import Rule
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.endpoint import Endpoint

FETCH, OFFSET_COMMIT, SHARE_FETCH = 1, 8, 78


def name_of_topic(context: RequestContext) -> Callable[[bytes], str | None]:
    def name_of(topic_id: bytes) -> str | None:
        topic = context.cluster.topic_by_id(topic_id)
        return None if topic is None else topic.name

    return name_of


class ActiveRules(Rules):
    """The rules of one broker process."""

    def __init__(self, dispatcher: Dispatcher, make_random: Callable[[int], Callable[[], float]]) -> None:
        """``make_random``: as of `Rules`."""
        super().__init__(dispatcher.state.clock.now_ms, make_random)
        self._dispatcher = dispatcher
        self._endpoints = dispatcher.endpoints
        """The broker's own."""

    def _checked(self, given: Mapping[str, Any]) -> Checked:
        state = self._dispatcher.state
        return checked(given, state.kafka_version, state.cluster.nodes)

    def _leaders(self) -> Leaders:
        return Leaders.now(self._dispatcher.state.cluster)

    def _install(self) -> None:
        dispatcher, active = self._dispatcher, self.active
        dispatcher.endpoints = _FaultyEndpoints(self, active, self._endpoints) if active else self._endpoints
        is_about_commits = any(
            rule.rule.conditions.may_meet(OFFSET_COMMIT, version)
            for rule in active
            for version in registry.versions(OFFSET_COMMIT)
        )
        dispatcher.sync_sharing_keys = () if is_about_commits else handlers.SYNC_SHARING_KEYS
        if is_about_commits and dispatcher.cached_commits is not None:
            dispatcher.cached_commits.drop_all()

    def handle(self, active: list[Rule], endpoint: Endpoint, request: Request, context: RequestContext) -> Result:
        """Handle a request as the first rule says that acts on it, or as the broker does."""
        known = known_request(request, context, any(rule.rule.conditions.names for rule in active))
        asked = Asked(known, context, context.node.node_id, name_of_topic(context))
        rule = self.first(active, asked)
        if rule is None:
            return endpoint.handle(request, context)

        def handle(request: Request) -> Result:
            return perform(endpoint.handle, endpoint.fail, request, replace(context, now_ms=self._now_ms()))

        return act(
            Faulty(
                rule,
                selection_of(rule.rule.conditions, asked.name_of_topic),
                request,
                known,
                context,
                context.cluster.nodes,
                handle,
                self._now_ms,
            )
        )


def known_request(request: Any, context: RequestContext, must_have_topics: bool) -> Request:
    """Return a request with all that it is about: of a Fetch or ShareFetch, the partitions of its session, too; of a
    Metadata request for all topics, these, if a rule asks for them."""
    known = request
    if context.api_key == METADATA and must_have_topics and not request.topics:
        from kproto.messages.k03_metadata import MetadataRequestTopic

        if request.topics is None or context.api_version == 0:
            known = request.replace(topics=tuple(MetadataRequestTopic(name=name) for name in context.cluster.topics))
    elif context.api_key == FETCH and request.session_id:
        known = _with_fetch_session(request, context)
    elif context.api_key == SHARE_FETCH and request.share_session_epoch > 0:
        known = _with_share_session(request, context)
    return known  # type: ignore[no-any-return]  # of its API's class


def _with_fetch_session(request: Any, context: RequestContext) -> Any:
    session = context.log_manager.fetch_sessions(context.node.node_id).find(request.session_id)
    if session is None:
        return request
    from kproto.messages.k01_fetch import FetchTopic

    # Each topic once, as in the response: errors are put in the places of its items.
    topics: dict[tuple[str, bytes], dict[int, Any]] = {}
    for topic in request.topics:
        topics.setdefault((topic.topic, topic.topic_id), {}).update({one.partition: one for one in topic.partitions})
    for one in session.requested():
        topics.setdefault((one.topic, one.topic_id), {}).setdefault(one.fetch.partition, one.fetch)
    return request.replace(
        topics=tuple(
            FetchTopic(topic=name, topic_id=topic_id, partitions=tuple(partitions.values()))
            for (name, topic_id), partitions in topics.items()
        )
    )


def _with_share_session(request: Any, context: RequestContext) -> Any:
    sessions = context.share_groups.sessions(context.node.node_id)
    session = sessions.get(request.group_id or "", request.member_id or "")
    if session is None:
        return request
    from kproto.messages.k78_share_fetch import FetchPartition, FetchTopic

    topics: dict[bytes, dict[int, Any]] = {}
    for topic in request.topics:
        topics.setdefault(topic.topic_id, {}).update({one.partition_index: one for one in topic.partitions})
    forgotten = {(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions}
    for one in session.partitions.keys() - forgotten:
        partition = FetchPartition(partition_index=one.partition, acknowledgement_batches=())
        topics.setdefault(one.topic_id, {}).setdefault(one.partition, partition)
    return request.replace(
        topics=tuple(
            FetchTopic(topic_id=topic_id, partitions=tuple(partitions.values()))
            for topic_id, partitions in topics.items()
        )
    )


class _FaultyEndpoints(Endpoints):
    """The endpoints of a broker that has rules, made when first needed."""

    def __init__(self, rules: ActiveRules, active: list[Rule], own: dict[tuple[int, int], Endpoint]) -> None:
        super().__init__()
        self._rules = rules
        self._active = active
        self._own = own

    def _made(self, key: tuple[int, int]) -> Endpoint:
        endpoint = self._own[key]
        active = [rule for rule in self._active if rule.rule.conditions.may_meet(*key)]
        if active:
            rules, own = self._rules, endpoint

            def handle(request: Any, context: RequestContext) -> Any:
                return rules.handle(active, own, request, context)

            endpoint = replace(own, handle=handle, is_learned=False)
        return endpoint
