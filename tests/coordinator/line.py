"""One group's life, played to whatever keeps it: real brokers in real time, or ours on a clock that is moved.

A script tells a `Line` what happens and when (`expiry_table`); the line looks at the group all the while, and notes
when each offset was gone and when the group came into each state.
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
    """What became of a group. Times are seconds from the beginning of the script."""

    gone: Mapping[str, float | None]
    """When each offset that was committed ("topic-partition") was first not there; None: it was there to the end."""
    states: Mapping[str, float] = field(default_factory=dict)
    """When the group was first seen in each state; Dead only after another."""
    answers: tuple[int, ...] = ()
    """Error codes that the script asked for."""
    loaded: float | None = None
    """When a broker that was restarted served the group again."""

    @classmethod
    def recorded(cls, facts: Mapping[str, Any]) -> Outcome:
        """Read what `expiry_recordings` has of a timeline."""
        return cls(
            gone=facts["gone"],
            states=facts["states"],
            answers=tuple(facts.get("answers", ())),
            loaded=facts.get("loaded"),
        )


def differences(expected: Outcome, seen: Outcome, states: tuple[str, ...], tolerance_s: float) -> Iterator[str]:
    """Yield in words where two outcomes differ: in time, or in what happened at all. Of states only these count."""
    if expected.loaded is not None and seen.loaded is not None:
        tolerance_s += abs(expected.loaded - seen.loaded)
    if expected.answers != seen.answers:
        yield f"answers {seen.answers}, not {expected.answers}"
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


class Line(ABC):
    """What a script may do to the group "g", by the time since the script began."""

    STEP_S = 0.25
    """How closely it is looked."""

    def __init__(self) -> None:
        self._gone: dict[str, float | None] = {}
        self._states: dict[str, float] = {}
        self.answers: list[int] = []
        self.loaded_s: float | None = None
        self.lag_s = 0.0
        """By how much the latest of all acts came too late."""

    def at(self, time_s: float) -> None:
        """Let time pass until then."""
        while (now_s := self.now_s) < time_s:
            self._look()
            self._pass_until(min(time_s, now_s + self.STEP_S))
        self.lag_s = max(self.lag_s, now_s - time_s)
        self._look()

    def outcome(self) -> Outcome:
        return Outcome(
            gone=dict(self._gone), states=dict(self._states), answers=tuple(self.answers), loaded=self.loaded_s
        )

    def _look(self) -> None:
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
        """Note that an offset is there, though nobody has looked yet."""
        self._gone.setdefault(f"{topic}-{partition}", None)

    @property
    @abstractmethod
    def now_s(self) -> float: ...

    @abstractmethod
    def _pass_until(self, time_s: float) -> None: ...

    @abstractmethod
    def _see(self) -> tuple[set[str], str] | None:
        """Return the offsets that are there and the state of the group; None while nobody answers."""

    @abstractmethod
    def commit(self, topic: str = "t", partition: int = 0, *, ret: int = -1, member: bool = False) -> None:
        """Commit as the member or as nobody, with a retention time in milliseconds; it has to succeed."""

    @abstractmethod
    def commit_v1(self, ago_ms: int) -> None:
        """Commit for partition 0 of "t" with a timestamp of the client's."""

    @abstractmethod
    def join(self, *subscribed: str, protocol_type: str = "consumer") -> None:
        """Have one member in a Stable group, who sends heartbeats from now on."""

    @abstractmethod
    def join_848(self, *subscribed: str) -> None:
        """Have one member in a group of KIP-848."""

    @abstractmethod
    def leave(self) -> None:
        """Have the member leave."""

    @abstractmethod
    def fall_silent(self) -> None:
        """Have the member send one more heartbeat, and none from now on."""

    @abstractmethod
    def ask_for_member_id(self) -> None:
        """Send JoinGroup v4 without a member id; note the answer."""

    @abstractmethod
    def join_with_member_id(self) -> None:
        """Send it with the id that was given; note the answer."""

    @abstractmethod
    def commit_in_transaction(self, partition: int = 0) -> None:
        """Begin a transaction, and commit for "t" in it as nobody."""

    @abstractmethod
    def end_transaction(self, *, committed: bool) -> None: ...

    @abstractmethod
    def delete_topic(self, topic: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Down:
    """A time in which the broker is down."""

    stop_s: float
    start_s: float
    """When it is started again; it serves the group some seconds later."""
    loaded_s: float
    """When it serves it, in the table's figures."""
    upgrade: str | None = None
    """The release as which it comes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A timeline, and what it comes to in each release that it was, or can be, measured on."""

    name: str
    play: Callable[[Line], None]
    until_s: float
    outcomes: Mapping[str, Outcome]
    """By Kafka version."""
    states: tuple[str, ...]
    """Those that are compared."""
    down: Down | None
    needs: tuple[tuple[int, int], ...]
    """API keys, each with a version of it, that it can't be played without."""
    is_long: bool
    """Whether it takes so long that real brokers are asked only if it is named."""

    def uses(self, api_key: int) -> bool:
        return api_key in {needed for needed, _ in self.needs}

    def can_be_played(self, kafka_version: KafkaVersion) -> bool:
        """Whether a release has all that the script uses. An upgrade has its release to begin with."""
        if self.down is not None and self.down.upgrade is not None:
            return kafka_version.name in self.outcomes
        return all(kafka_version.serves(api_key, version) for api_key, version in self.needs)

    def run(self, line: Line) -> Outcome:
        line.at(0)
        self.play(line)
        line.at(self.until_s)
        return line.outcome()
