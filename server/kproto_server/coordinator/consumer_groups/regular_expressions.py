"""Subscriptions by regular expressions: when they are matched against the topics, and what follows.

Theory of operation. A heartbeat that brings a new expression checks its syntax only; matching it against all topics is
work of its own, after the response. Its result is written to the log with a new group epoch, and the next heartbeats
get what it means. The expressions of a group are matched again when topics were created or the group was loaded, at
most every ten seconds, and otherwise every `group.consumer.regex.refresh.interval.ms`; the heartbeats of all members
look whether that is due. Deleted topics leave the hash of the subscribed topics at once, results with the next match.
The sender of the heartbeat that finds a match due decides for the whole group which topics may be found: those that it
may describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.clock import Steps
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.consumer_groups.data import NO_VERSION, ResolvedRegex
from kproto_server.coordinator.consumer_groups.targets import hash_of_topics
from kproto_server.coordinator.epoch_groups.writing import write
from kproto_server.coordinator.regular_expression import InvalidRegex, regex_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from kproto_server.coordinator.consumer_groups.data import ConsumerMember, GroupData
    from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.epoch_groups.requests import Client

REFRESH_MIN_MS = 10_000
"""The time between two matches of a group's expressions, at least: fixed in Kafka."""
STEP_CHARACTERS = 4000
"""Characters of names that are matched at once: 5 ms, for expressions that RE2 has to simulate 60 ms."""


def update(
    coordinator: GroupCoordinator,
    group: ConsumerGroup,
    data: GroupData,
    member: ConsumerMember,
    updated: ConsumerMember,
    client: Client,
    refresh_interval_ms: int,
    now_ms: int,
) -> tuple[GroupData, bool] | Refusal:
    """Return the data after a heartbeat, and whether it raises the epoch; refuse an expression that is not RE2's."""
    old, new = member.regex, updated.regex
    raises_epoch = is_unmatched = False
    if old != new:
        data = without_unused(data, old)
        if new and new not in _used(group.data):
            refusal = _syntax_error(new)
            if refusal is not None:
                return refusal
            is_unmatched = True
        elif new:
            raises_epoch = new in data.resolved
        elif old:
            raises_epoch = coordinator.behavior.removed_regex_raises_epoch
    used = _used(data)
    if (
        used
        and not group.is_matching
        and _is_refresh_due(coordinator, group, used, refresh_interval_ms, now_ms, is_unmatched=is_unmatched)
    ):
        group.is_matching = True
        coordinator.clock.call_at(now_ms, lambda: _refresh(coordinator, group, client), for_client=True)
    return data, raises_epoch


def without_unused(data: GroupData, regex: str | None) -> GroupData:
    """Return the data without the result of an expression that a member has given up, unless others have it."""
    if not regex or regex not in data.resolved or any(member.regex == regex for member in data.members.values()):
        return data
    return data._replace(resolved={one: found for one, found in data.resolved.items() if one != regex})


def _used(data: GroupData) -> dict[str, None]:
    """Return the expressions that members subscribe to, each once."""
    return dict.fromkeys(member.regex for member in data.members.values() if member.regex)


def _syntax_error(regex: str) -> Refusal | None:
    try:
        regex_of(regex)
    except InvalidRegex as error:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        return Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
    return None


def _is_refresh_due(
    coordinator: GroupCoordinator,
    group: ConsumerGroup,
    used: Collection[str],
    interval_ms: int,
    now_ms: int,
    *,
    is_unmatched: bool,
) -> bool:
    """Return whether the group's expressions are matched now; their last match counts, replaced ones included."""
    resolved = group.data.resolved
    last_ms = max([found.timestamp_ms for found in resolved.values()], default=0)
    if now_ms <= last_ms + REFRESH_MIN_MS:
        return False
    newest = max([found.version for found in resolved.values()], default=NO_VERSION)
    is_old = newest < coordinator.created_version() or now_ms > last_ms + interval_ms
    return is_unmatched or len(used) != len(resolved) or is_old


def _refresh(coordinator: GroupCoordinator, group: ConsumerGroup, client: Client) -> None:
    """Match the group's expressions in steps, and write the result with a new epoch if it is another one."""
    Steps(coordinator.clock).begin(_steps(coordinator, group, client))


def _steps(coordinator: GroupCoordinator, group: ConsumerGroup, client: Client) -> Iterator[None]:
    version, left, may_describe = coordinator.topics_version(), STEP_CHARACTERS, client.may_describe
    matched: dict[str, frozenset[str]] = {}
    for text in _used(group.data):
        try:
            regex, found = regex_of(text), []
        except InvalidRegex:  # of a log that a real broker has written; Kafka finds nothing, too
            matched[text] = frozenset()
            continue
        for name in list(coordinator.topics):
            left -= len(name)
            if left < 0:
                left = STEP_CHARACTERS
                yield
            if regex.matches(name) and (may_describe is None or may_describe(name)):
                found.append(name)
        matched[text] = frozenset(found)
    group.is_matching = False
    if coordinator.groups.get(group.group_id) is group:
        _write(coordinator, group, matched, version)


def _write(
    coordinator: GroupCoordinator, group: ConsumerGroup, matched: Mapping[str, frozenset[str]], version: int
) -> None:
    """Write which topics the expressions match, without those that no member has any more."""
    now_ms, data = coordinator.clock.now_ms(), group.data
    used = _used(data)
    resolved = {text: ResolvedRegex(found, version, now_ms) for text, found in matched.items() if text in used}
    before, data = data, data._replace(resolved=resolved)
    topics_hash = hash_of_topics(coordinator, data)
    if _topics(before.resolved) != _topics(resolved) or topics_hash != data.metadata_hash:
        data = data._replace(epoch=data.epoch + 1, metadata_hash=topics_hash)
    write(coordinator, group, data, now_ms)


def _topics(resolved: Mapping[str, ResolvedRegex]) -> dict[str, frozenset[str]]:
    return {regex: found.topics for regex, found in resolved.items() if found.topics}
