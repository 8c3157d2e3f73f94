"""The life of one group as a script, which runs against real brokers in real time or against kproto on a virtual clock.

A script calls the methods of a `Timeline` at given times (`expiration_table`). The timeline polls the group, and
records when each offset was missing for the first time and when the group entered each state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kproto_server.releases.kafka_version import KafkaVersion

DEAD = "Dead"
EMPTY = "Empty"
STABLE = "Stable"
RETENTION_S = 60
SESSION_S = 10
"""The session timeout of members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The observed life of a group. Times are seconds since the beginning of the script."""

    gone: Mapping[str, float | None]
    """When each committed offset ("topic-partition") was missing for the first time; None: it was never missing."""
    states: Mapping[str, float] = field(default_factory=dict)
    """When the group was first seen in each state; Dead only after another state."""
    error_codes: tuple[int, ...] = ()
    """The error codes that the script records."""
    loaded: float | None = None
    """When a restarted broker served the group again."""

    @classmethod
    def recorded(cls, fields: Mapping[str, Any]) -> Outcome:
        """Return the outcome of a timeline in `expiry_recordings`."""
        return cls(
            gone=fields["gone"],
            states=fields["states"],
            error_codes=tuple(fields.get("error_codes", ())),
            loaded=fields.get("loaded"),
        )


def differences(expected: Outcome, seen: Outcome, states: tuple[str, ...], tolerance_s: float) -> Iterator[str]:
    """Yield a text for each difference between two outcomes. Of the states only ``states`` are compared."""
    if expected.loaded is not None and seen.loaded is not None:
        tolerance_s += abs(expected.loaded - seen.loaded)
    if expected.error_codes != seen.error_codes:
        yield f"error codes {seen.error_codes}, not {expected.error_codes}"
    if expected.gone.keys() != seen.gone.keys():
        yield f"offsets {sorted(seen.gone)}, not {sorted(expected.gone)}"
    times: list[tuple[str, float | None, float | None]] = [
        *((f"{name} gone", expected.gone[name], seen.gone.get(name)) for name in expected.gone),
        *((state, expected.states.get(state), seen.states.get(state)) for state in states),
    ]
    for what, wanted, found in times:
        if wanted is None and found is None:
            continue
        if wanted is None or found is None or abs(wanted - found) > tolerance_s:
            yield f"{what} at {found} s, not at {wanted} s"


class Timeline(ABC):
    """The actions of a script on the group "g", with the time since the script began."""

    STEP_S = 0.25
    """The time between two polls."""

    def __init__(self) -> None:
        self._gone: dict[str, float | None] = {}
        self._states: dict[str, float] = {}
        self.error_codes: list[int] = []
        self.loaded_s: float | None = None
        self.lag_s = 0.0
        """The greatest delay of an action."""

    def at(self, time_s: float) -> None:
        """Let time pass until a time of the script."""
        while (now_s := self.now_s) < time_s:
            self._poll()
            self._pass_until(min(time_s, now_s + self.STEP_S))
        self.lag_s = max(self.lag_s, now_s - time_s)
        self._poll()

    def outcome(self) -> Outcome:
        return Outcome(
            gone=dict(self._gone), states=dict(self._states), error_codes=tuple(self.error_codes), loaded=self.loaded_s
        )

    def _poll(self) -> None:
        found = self._see()
        if found is None:
            return
        stored, state = found
        now_s = round(self.now_s, 2)
        for name in stored:
            self._gone.setdefault(name, None)
        for name, gone_s in self._gone.items():
            if gone_s is None and name not in stored:
                self._gone[name] = now_s
        if state != DEAD or self._states:
            self._states.setdefault(state, now_s)

    def _committed(self, topic: str, partition: int) -> None:
        """Note that an offset exists, even before the next poll."""
        self._gone.setdefault(f"{topic}-{partition}", None)

    @property
    @abstractmethod
    def now_s(self) -> float: ...

    @abstractmethod
    def _pass_until(self, time_s: float) -> None: ...

    @abstractmethod
    def _see(self) -> tuple[set[str], str] | None:
        """Return the group's offsets and its state; None while the broker does not respond."""

    @abstractmethod
    def commit(self, topic: str = "t", partition: int = 0, *, ret: int = -1, member: bool = False) -> None:
        """Commit as the member or without one, with a retention time in milliseconds; the commit has to succeed."""

    @abstractmethod
    def commit_v1(self, ago_ms: int) -> None:
        """Commit partition 0 of "t" in version 1, with a timestamp."""

    @abstractmethod
    def join(self, *subscribed: str, protocol_type: str = "consumer") -> None:
        """Make the group Stable with one member, which sends heartbeats from now on."""

    @abstractmethod
    def join_848(self, *subscribed: str) -> None:
        """Add a member to a consumer group (KIP-848)."""

    @abstractmethod
    def leave(self) -> None:
        """Have the member send LeaveGroup."""

    @abstractmethod
    def fall_silent(self) -> None:
        """Have the member send one more heartbeat, and no more from then on."""

    @abstractmethod
    def ask_for_member_id(self) -> None:
        """Send JoinGroup v4 without a member id; record the error code."""

    @abstractmethod
    def join_with_member_id(self) -> None:
        """Send JoinGroup with the member id from the response; record the error code."""

    @abstractmethod
    def commit_in_transaction(self, partition: int = 0) -> None:
        """Begin a transaction, and commit "t" in it without a member."""

    @abstractmethod
    def end_transaction(self, *, committed: bool) -> None: ...

    @abstractmethod
    def delete_topic(self, topic: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Downtime:
    """A time in which the broker is down."""

    stop_s: float
    start_s: float
    """When the broker is started again; it serves the group some seconds later."""
    loaded_s: float
    """When it serves the group, in the figures of the table."""
    upgrade: str | None = None
    """The release of the restarted broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script, and its outcome in each release on which it was measured or can be."""

    name: str
    play: Callable[[Timeline], None]
    until_s: float
    outcomes: Mapping[str, Outcome]
    """By Kafka version."""
    states: tuple[str, ...]
    """The states that are compared."""
    down: Downtime | None
    needs: tuple[tuple[int, int], ...]
    """API keys, each with a version, that the script needs."""
    is_long: bool
    """Whether the script takes so long that it runs on real brokers only by name."""

    def uses(self, api_key: int) -> bool:
        return api_key in {needed for needed, _ in self.needs}

    def can_run_on(self, kafka_version: KafkaVersion) -> bool:
        """Return whether a release has all APIs of the script. A script with an upgrade has a release of its own."""
        if self.down is not None and self.down.upgrade is not None:
            return kafka_version.name in self.outcomes
        return all(kafka_version.serves(api_key, version) for api_key, version in self.needs)

    def run(self, timeline: Timeline) -> Outcome:
        timeline.at(0)
        self.play(timeline)
        timeline.at(self.until_s)
        return timeline.outcome()
