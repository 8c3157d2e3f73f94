"""The fault rules of a broker or a proxy with their counts: which one acts on a request."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kproto.messages import APIS
from kproto_server.faults.changes import Leaders
from kproto_server.faults.rule import API_VERSIONS
from kproto_server.observation.conditions import names_meet
from kproto_server.observation.named import names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kproto.message import Request
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.faults.checked_rule import Checked
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.requests.context import ConnectionInfo

logger = logging.getLogger("kproto")

SOFTWARE_SINCE = 3
"""The version of ApiVersions from which on clients name their software."""

NO_LEADERS = Leaders({}, {}, ())


class Circumstances(Protocol):
    """What a rule needs to know of a request beside what it names. A `RequestContext` has all of it."""

    @property
    def connection(self) -> ConnectionInfo:
        """The client."""

    @property
    def client_id(self) -> str:
        """That of the request."""

    @property
    def api_key(self) -> int:
        """That of the request."""

    @property
    def api_version(self) -> int:
        """That of the request."""

    @property
    def kafka_version(self) -> KafkaVersion:
        """The release of the broker."""

    @property
    def settings(self) -> DynamicSettings:
        """Those of the broker."""


class Asked(NamedTuple):
    """A request that rules may act on."""

    request: Request
    """With all that it is about: an incremental Fetch does not name the partitions of its session."""
    context: Circumstances
    node_id: int | None
    """The node that has received it; None: no rule has that condition."""
    name_of_topic: Callable[[bytes], str | None]
    """Returns the name of the topic with an id."""


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

    def acts(self, asked: Asked, now_ms: int) -> bool:
        """Return whether the rule acts on a request, and count it."""
        rule = self.rule
        is_in_time = self.begins_ms <= now_ms and (rule.for_ms is None or now_ms < self.begins_ms + rule.for_ms)
        if self.is_exhausted or not is_in_time or not _is_met(rule, asked):
            return False
        self.matched += 1
        if self.matched < rule.first or (rule.probability is not None and self._random() >= rule.probability):
            return False
        self.fired += 1
        return True

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.given.items())


def _is_met(rule: Checked, asked: Asked) -> bool:
    conditions, context, request = rule.conditions, asked.context, asked.request
    if not conditions.may_meet(context.api_key, context.api_version):
        return False
    if conditions.fields:
        info = context.connection
        found = {
            "client_id": context.client_id,
            "software_name": info.software_name,
            "software_version": info.software_version,
            "node_id": asked.node_id,
        }
        if context.api_key == API_VERSIONS and context.api_version >= SOFTWARE_SINCE:  # the handler learns them
            for name in ("software_name", "software_version"):
                found[name] = getattr(request, f"client_{name}")
        if any(found[name] != value for name, value in conditions.fields.items()):
            return False
    return not conditions.names or names_meet(names_in(request), conditions.names, asked.name_of_topic)


class Rules:
    """The rules of a broker process, or of a proxy; a subclass applies them. Only the thread that serves calls it."""

    def __init__(self, now_ms: Callable[[], int], make_random: Callable[[int], Callable[[], float]]) -> None:
        """``make_random``: returns a function that returns random numbers from 0 to 1, determined by a seed."""
        self._now_ms = now_ms
        self._make_random = make_random
        self._initial: Sequence[Mapping[str, Any]] = ()
        self._rule_count = 0
        self.rules: list[Rule] = []
        """The rules, the oldest one first, also those that act on no request any more."""

    def add(self, given: Mapping[str, Any]) -> Rule:
        """Add a rule behind the others; return it.

        Raises:
            UsageError: the rule is wrong or can never act on a request; the text says why.
        """
        rule = self._checked(given)
        leaders = self._leaders() if rule.action.kind == "stale" else NO_LEADERS
        self._rule_count += 1
        random = self._make_random(rule.seed)
        added = Rule(self._rule_count, given, rule, leaders, self._now_ms(), random)
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

    def first(self, active: Collection[Rule], asked: Asked) -> Rule | None:
        """Return the first rule that acts on a request, count and log it; None: no rule does."""
        now_ms = self._now_ms()
        rule = next((rule for rule in active if rule.acts(asked, now_ms)), None)
        if rule is None:
            return None
        context, host = asked.context, asked.context.connection.client_host
        logger.info("%s %r: %s: fault rule %d", host, context.client_id, APIS[context.api_key], rule.number)
        if rule.is_exhausted:
            self._install()
        return rule

    @property
    def active(self) -> list[Rule]:
        """The rules that may still act on a request."""
        return [rule for rule in self.rules if not rule.is_exhausted]

    def _checked(self, given: Mapping[str, Any]) -> Checked:
        """Return a rule in the form in which it is applied.

        Raises:
            UsageError: as for `add`.
        """
        raise NotImplementedError

    def _leaders(self) -> Leaders:
        """Return the leaders as they are."""
        raise NotImplementedError

    def _install(self) -> None:
        """Have the rules that may still act on a request asked, and only for those requests."""
        raise NotImplementedError
