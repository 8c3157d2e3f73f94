"""Kafka versions: the wire surface and the version behavior of a Kafka release (D3).

A release says which versions of which API a broker advertises and serves, and answers every question of the kind "what
did that release do here?" by a named switch. Handlers ask the Kafka version, they never compare releases themselves.

`KafkaVersion.named("2.0")` is the line 2.0 (so are "2.0.1" and "2.0.0"), "3.9-zookeeper" the same release in its other
mode, and "latest" is all releases at once: the APIs of all of them, oldest version to newest, with the version
behavior of the newest.
"""

from __future__ import annotations

from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from kproto.errors import UsageError
from kproto_server.releases.api_versions import HISTORY, INTERNAL, LINES
from kproto_server.releases.release import Mode, Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "LATEST",
    "KafkaVersion",
    "Mode",
    "UnknownKafkaVersion",
    "kafka_version_names",
    "releases_serving",
    "removed_in",
]

LATEST = "latest"
"""The default Kafka version."""

PRODUCE = 0

_MODES: tuple[Mode, Mode] = ("zookeeper", "kraft")


class UnknownKafkaVersion(UsageError):
    """No release has this name."""

    def __init__(self, name: str) -> None:
        valid = ", ".join(kafka_version_names())
        super().__init__(
            f"no Kafka release {name!r}: use {LATEST}, or one of {valid} "
            "(a patch release such as 2.0.1 too; from 3.3 to 3.9 with -zookeeper for that mode)"
        )
        self.name = name


def kafka_version_names() -> list[str]:
    """The release lines that have a Kafka version, oldest first."""
    return list(dict.fromkeys(line for line, _ in _surfaces()))


def _surfaces() -> Iterator[tuple[str, Mode]]:
    """Every line in each of its modes: oldest first, ZooKeeper before KRaft."""
    both: list[tuple[str, Mode]] = [(line, mode) for mode in _MODES for line in LINES[mode]]
    yield from sorted(both, key=lambda surface: _sortable(surface[0]))


def _release(line: str) -> tuple[int, ...]:
    return tuple(int(part) for part in line.split("."))


def _sortable(line: str) -> tuple[int, ...]:
    # 4.0.0 comes before the line 4.0, which is 4.0.1 and later.
    release = _release(line)
    return release if len(release) > 2 else (*release, 1)


def _line_of(asked: str) -> str | None:
    """The line that a release belongs to; None where there is none, or where it is no release number."""
    lines = kafka_version_names()
    if asked in lines:
        return asked
    shorter, dot, patch = asked.rpartition(".")
    if shorter in lines and patch.isdigit():
        return shorter
    # Before 1.0 a line has three numbers; two of them mean its newest: 0.10 is 0.10.2.
    longer = [line for line in lines if line.startswith(asked + ".") and line.startswith("0.")]
    return longer[-1] if longer and dot else None


@cache
def _api_versions(line: str, mode: str) -> Mapping[int, tuple[int, int]]:
    lines = LINES[mode]
    reached = set(lines[: lines.index(line) + 1])
    ranges = {}
    for api_key, history in HISTORY[mode].items():
        steps = [step.partition(":") for step in history.split()]
        known = [versions for since, _, versions in steps if since in reached]
        if known:
            low, _, high = known[-1].partition("-")
            ranges[api_key] = (int(low), int(high))
    return MappingProxyType(ranges)


def _union() -> Mapping[int, tuple[int, int]]:
    ranges: dict[int, tuple[int, int]] = {}
    for histories in HISTORY.values():
        for api_key, history in histories.items():
            steps = [step.partition(":")[2].split("-") for step in history.split()]
            least, greatest = ranges.get(api_key, (2**15, -1))
            ranges[api_key] = (
                min(least, *(int(low) for low, _ in steps)),
                max(greatest, *(int(high) for _, high in steps)),
            )
    return MappingProxyType(dict(sorted(ranges.items())))


class KafkaVersion(Release):
    """A Kafka release as a broker emulates it: the API versions that it serves, and its behavior (`Release.behavior`).

    Two Kafka versions of one name are equal.
    """

    def __init__(
        self, name: str, release: tuple[int, ...], mode: Mode, api_versions: Mapping[int, tuple[int, int]]
    ) -> None:
        super().__init__(release, mode, is_latest=name == LATEST)
        self.name = name
        """As `named` takes it: "2.0", "3.9-zookeeper", "latest"."""
        self.api_versions = api_versions
        """API key: least and greatest version that ApiVersions names; before 0.10, which has no such API, that are
        served. Keys in rising order, as brokers send them. Internal APIs included (`is_internal`)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KafkaVersion) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"KafkaVersion.named({self.name!r})"

    @classmethod
    def named(cls, name: str = LATEST) -> KafkaVersion:
        """The Kafka version of a release line, of the line of a patch release, or `LATEST`.

        Raises:
            UnknownKafkaVersion: no release has this name.
        """
        if name == LATEST:
            newest = LINES["kraft"][-1]
            return cls(LATEST, _release(newest), "kraft", _union())
        asked, dash, mode_asked = name.partition("-")
        line = _line_of(asked)
        modes = [mode for mode in ("kraft", "zookeeper") if line in LINES[mode]]
        mode = mode_asked if dash else next(iter(modes), "")
        if line is None or mode not in modes:
            raise UnknownKafkaVersion(name)
        full_name = line if mode == modes[0] else f"{line}-{mode}"
        return cls(full_name, _release(line), cast("Mode", mode), _api_versions(line, mode))

    @cached_property
    def has_api_versions(self) -> bool:
        """Whether ApiVersions exists: from 0.10.0 on. Before, the request closes the connection (BA-6)."""
        return self.at_least(0, 10)

    @cached_property
    def closes_on_newer_versions(self) -> bool:
        """Whether a request version beyond the newest closes the connection. 0.8 reads such a request with the newest
        layout that it knows, except for OffsetCommit (fixtures/PROVENANCE.md)."""
        return self.at_least(0, 9)

    def is_internal(self, api_key: int) -> bool:
        """Whether only brokers and controllers send this API."""
        return api_key in INTERNAL

    def serves(self, api_key: int, api_version: int) -> bool:
        """Whether a request of this version is answered rather than the connection closed (BA-6).

        That is what `api_versions` says, but for Produce of 4.x: it advertises 0 and up for the sake of one client
        library and serves 3 and up (BA-25).
        """
        low, high = self.api_versions.get(api_key, (0, -1))
        if api_key == PRODUCE and self.at_least(4, 0) and not self.is_latest:
            low = 3
        return low <= api_version <= high


def releases_serving(api_key: int, api_version: int) -> list[str]:
    """The release lines, oldest first, of which a broker (in one of its modes at least) answers this version."""
    found = (line for line, mode in _surfaces() if KafkaVersion.named(f"{line}-{mode}").serves(api_key, api_version))
    return list(dict.fromkeys(found))


def removed_in(api_key: int, api_version: int, target: KafkaVersion) -> bool:
    """Whether `target` no longer serves a version that an older release did.

    A version that came only after `target` was not removed in it.
    """
    if target.serves(api_key, api_version):
        return False
    return any(_release(line) < target.release for line in releases_serving(api_key, api_version))
