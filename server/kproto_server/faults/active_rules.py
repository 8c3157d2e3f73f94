"""The fault rules of a running broker: which one acts on a request, and how they come into its way.

Theory of operation. A connection asks `Dispatcher.endpoints` for the endpoint of each request. While there are rules,
this table is another one (`_FaultyEndpoints`): its endpoints are those of the broker, but the handlers of the APIs and
versions that some rule may act on ask the rules first. Rules about commits also empty the commit cache, which would
respond without a handler, and end that commits share a sync: a rule may delay any of them. Without rules, the
dispatcher is as if this module did not exist.

The oldest rule that acts on a request is the only one that does. `Rule.acts` counts requests and asks for the random
number of `probability` in the order of the requests, so that a test with one connection has the same result each time.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kproto.messages import APIS
from kproto_server import handlers
from kproto_server.faults.actions import Faulty, act
from kproto_server.faults.changes import Leaders
from kproto_server.faults.rule import API_VERSIONS, METADATA, checked, selection_of
from kproto_server.observation.conditions import names_meet
from kproto_server.observation.named import names_in
from kproto_server.requests.dispatcher import Endpoints
from kproto_server.requests.endpoint import perform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kproto.message import Request
    from kproto_server.faults.rule import Checked
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.deferred import Result
    from kproto_server.requests.dispatcher import Dispatcher
    from kproto_server.requests.endpoint import Endpoint

logger = logging.getLogger("kproto")

FETCH, OFFSET_COMMIT = 1, 8
SOFTWARE_SINCE = 3
"""The version of ApiVersions from which on clients name their software."""

NO_LEADERS = Leaders({}, {}, ())


class Rule:
    """One rule, with its counts."""

    def __init__(
        self,
        number: int,
        given: Mapping[str, Any],
        rule: Checked,
        leaders: Leaders,
        now_ms: int,
        random: Callable[[], float],
    ) -> None:
        """``random``: returns the next random number from 0 to 1, below 1."""
        self.number: int = number
        self.given: dict[str, Any] = dict(given)
        self.rule: Checked = rule
        self.leaders: Leaders = leaders
        self.begins_ms: int = now_ms + rule.after_ms
        self._random = random
        self.matched: int = 0
        """The number of requests that met the conditions in its time."""
        self.fired: int = 0
        """The number of requests that the rule has acted on."""

    @property
    def is_exhausted(self) -> bool:
        """Whether the rule has acted on as many requests as it may."""
        return self.rule.times is not None and self.fired >= self.rule.times

    def acts(self, request: Request, context: RequestContext, now_ms: int) -> bool:
        """Return whether the rule acts on a request, and count it."""
        rule = self.rule
        is_in_time = self.begins_ms <= now_ms and (rule.for_ms is None or now_ms < self.begins_ms + rule.for_ms)
        if self.is_exhausted or not is_in_time or not _is_met(rule, request, context):
            return False
        self.matched += 1
        if self.matched < rule.first or (rule.probability is not None and self._random() >= rule.probability):
            return False
        self.fired += 1
        return True

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.given.items())


def _is_met(rule: Checked, request: Request, context: RequestContext) -> bool:
    conditions = rule.conditions
    if not conditions.may_meet(context.api_key, context.api_version):
        return False
    if conditions.fields:
        info = context.connection
        found = {
            "client_id": context.client_id,
            "software_name": info.software_name,
            "software_version": info.software_version,
            "node_id": context.node.node_id,
        }
        if context.api_key == API_VERSIONS and context.api_version >= SOFTWARE_SINCE:  # the handler learns them
            for name in ("software_name", "software_version"):
                found[name] = getattr(request, f"client_{name}")
        if any(found[name] != value for name, value in conditions.fields.items()):
            return False
    return not conditions.names or names_meet(names_in(request), conditions.names, name_of_topic(context))


def name_of_topic(context: RequestContext) -> Callable[[bytes], str | None]:
    def name_of(topic_id: bytes) -> str | None:
        topic = context.cluster.topic_by_id(topic_id)
        return None if topic is None else topic.name

    return name_of


class ActiveRules:
    """The rules of one broker process. Only the broker's thread calls it."""

    def __init__(self, dispatcher: Dispatcher, make_random: Callable[[int], Callable[[], float]]) -> None:
        """``make_random``: returns a function that returns random numbers from 0 to 1, determined by a seed."""
        self._dispatcher = dispatcher
        self._clock = dispatcher.state.clock
        self._make_random = make_random
        self._endpoints = dispatcher.endpoints
        """The broker's own."""
        self._initial: Sequence[Mapping[str, Any]] = ()
        self._rule_count = 0
        self.rules: list[Rule] = []
        """The rules, the oldest one first, also those that act on no request any more."""

    def add(self, given: Mapping[str, Any]) -> Rule:
        """Add a rule behind the others; return it.

        Raises:
            UsageError: the rule is wrong or can never act on a request; the text says why.
        """
        cluster = self._dispatcher.state.cluster
        rule = checked(given, self._dispatcher.state.kafka_version, cluster.nodes)
        leaders = Leaders.now(cluster) if rule.action.kind == "stale" else NO_LEADERS
        self._rule_count += 1
        random = self._make_random(rule.seed)
        added = Rule(self._rule_count, given, rule, leaders, self._clock.now_ms(), random)
        self.rules.append(added)
        self._install()
        return added

    def add_initial(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """Add rules that `reset` adds again.

        Raises:
            UsageError: as for `add`.
        """
        self._initial = rules
        for rule in rules:
            self.add(rule)

    def remove(self, rule: Rule) -> None:
        """Remove a rule, if it is there. Requests that it has acted on stay without a response, or delayed."""
        if rule in self.rules:
            self.rules.remove(rule)
            self._install()

    def clear(self) -> None:
        """Remove all rules."""
        self.rules.clear()
        self._install()

    def reset(self) -> None:
        """Have the rules of the broker's start only, with new counts."""
        self.clear()
        self._rule_count = 0
        self.add_initial(self._initial)

    def _install(self) -> None:
        """Have the dispatcher ask the rules that may still act on a request, and only for those requests."""
        dispatcher = self._dispatcher
        active = [rule for rule in self.rules if not rule.is_exhausted]
        dispatcher.endpoints = _FaultyEndpoints(self, active, self._endpoints) if active else self._endpoints
        is_about_commits = any(rule.rule.conditions.api_keys in (None, {OFFSET_COMMIT}) for rule in active)
        dispatcher.sync_sharing_keys = () if is_about_commits else handlers.SYNC_SHARING_KEYS
        if is_about_commits and dispatcher.cached_commits is not None:
            dispatcher.cached_commits.drop_all()

    def handle(self, active: list[Rule], endpoint: Endpoint, request: Request, context: RequestContext) -> Result:
        """Handle a request as the first rule says that acts on it, or as the broker does."""
        known = known_request(request, context, any(rule.rule.conditions.names for rule in active))
        now_ms = self._clock.now_ms()
        rule = next((rule for rule in active if rule.acts(known, context, now_ms)), None)
        if rule is None:
            return endpoint.handle(request, context)
        if rule.is_exhausted:
            self._install()
        info = context.connection
        logger.info("%s %r: %s: fault rule %d", info.client_host, context.client_id, APIS[context.api_key], rule.number)

        def handle(request: Request) -> Result:
            return perform(endpoint.handle, endpoint.fail, request, replace(context, now_ms=self._clock.now_ms()))

        return act(
            Faulty(
                rule.rule.action,
                selection_of(rule.rule.conditions, name_of_topic(context)),
                rule.leaders,
                request,
                known,
                context,
                handle,
                self._clock.now_ms,
                f"fault rule {rule.number}",
            )
        )


def known_request(request: Any, context: RequestContext, must_have_topics: bool) -> Request:
    """Return a request with all that it is about: of a Fetch, the partitions of its session, too; of a Metadata request
    for all topics, these, if a rule asks for them."""
    if context.api_key == METADATA and must_have_topics and not request.topics:
        from kproto.messages.k03_metadata import MetadataRequestTopic

        if request.topics is None or context.api_version == 0:
            every = tuple(MetadataRequestTopic(name=name) for name in context.cluster.topics)
            return request.replace(topics=every)  # type: ignore[no-any-return]
    if context.api_key != FETCH or not request.session_id:
        return request  # type: ignore[no-any-return]  # of its API's class
    session = context.log_manager.fetch_sessions(context.node.node_id).find(request.session_id)
    if session is None:
        return request  # type: ignore[no-any-return]
    from kproto.messages.k01_fetch import FetchTopic

    # Each topic once, as in the response: errors are put in the places of its items.
    topics: dict[tuple[str, bytes], dict[int, Any]] = {}
    for topic in request.topics:
        topics.setdefault((topic.topic, topic.topic_id), {}).update({one.partition: one for one in topic.partitions})
    for one in session.requested():
        topics.setdefault((one.topic, one.topic_id), {}).setdefault(one.fetch.partition, one.fetch)
    return request.replace(  # type: ignore[no-any-return]
        topics=tuple(
            FetchTopic(topic=name, topic_id=topic_id, partitions=tuple(partitions.values()))
            for (name, topic_id), partitions in topics.items()
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
