"""A fault rule in the form in which it is applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.declaration import VersionRange


class Action(NamedTuple):
    """What a rule does."""

    kind: str
    """The name of the action, or ``delay_ms``."""
    value: Any
    delay_ms: int
    is_after: bool
    """Whether it acts after the request has taken effect."""
    place: str | None
    chunk_interval_ms: int


class Conditions(NamedTuple):
    """The requests that a rule is about."""

    api_keys: frozenset[int] | None
    """None: all APIs."""
    versions: VersionRange
    fields: Mapping[str, str | int]
    """By names in `kproto_server.faults.rule.ON_FIELDS`."""
    names: Mapping[str, str | int]
    """By names in `kproto_server.observation.conditions.ON_NAMES`."""
    without_room: frozenset[tuple[int, int]] = frozenset()
    """API keys and versions whose response has nothing that the action changes."""

    def may_meet(self, api_key: int, api_version: int) -> bool:
        """Return whether a request of this version may meet the conditions."""
        return (
            (self.api_keys is None or api_key in self.api_keys)
            and self.versions.covers(api_version)
            and (api_key, api_version) not in self.without_room
        )


class Checked(NamedTuple):
    """A rule that was checked."""

    conditions: Conditions
    action: Action
    first: int
    """The number of the first request that the rule acts on, among those that meet the conditions."""
    times: int | None
    probability: float | None
    seed: int
    after_ms: int
    for_ms: int | None
