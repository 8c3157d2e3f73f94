"""Kafka versions: the releases that a broker can emulate, by name (D3).

A Kafka version has the API versions that a broker of the release advertises and serves, and by `KafkaVersion.behavior`
the switches for everything else that the release does differently.

`KafkaVersion.named("2.0")` is the release line 2.0, and so are "2.0.1" and "2.0.0". "3.9-zookeeper" is the release line
3.9 in ZooKeeper mode. "latest" is all releases at once: their APIs from the oldest to the newest version, with the
behavior of the newest release.
"""

from __future__ import annotations

from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from kproto.errors import UsageError
from kproto_server.releases.api_versions import HISTORY, INTERNAL, LINES
from kproto_server.releases.release import Mode, Release

if TYPE_CHECKING:
    from collections.abc import Mapping

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
TELEMETRY = MappingProxyType({71: (0, 0), 72: (0, 0)})
"""GetTelemetrySubscriptions and PushTelemetry."""

ROWS_KEPT = 4096
"""API keys and versions whose releases are kept: more than Kafka has."""

_MODES: tuple[Mode, Mode] = ("zookeeper", "kraft")


class UnknownKafkaVersion(UsageError):
    """No Kafka version has the name."""

    def __init__(self, name: str) -> None:
        valid = ", ".join(kafka_version_names())
        super().__init__(
            f"no Kafka release {name!r}: use {LATEST}, or one of {valid} "
            "(a patch release such as 2.0.1 too; from 3.3 to 3.9 with -zookeeper for that mode)"
        )
        self.name = name


def kafka_version_names() -> list[str]:
    """Return the release lines that have a Kafka version, oldest first."""
    return list(_lines())


@cache
def _lines() -> dict[str, None]:
    return dict.fromkeys(line for line, _ in _lines_and_modes())


@cache
def _lines_and_modes() -> tuple[tuple[str, Mode], ...]:
    """Return each line in each of its modes: oldest first, ZooKeeper before KRaft."""
    both: list[tuple[str, Mode]] = [(line, mode) for mode in _MODES for line in LINES[mode]]
    return tuple(sorted(both, key=lambda line_and_mode: _sort_key(line_and_mode[0])))


def _release(line: str) -> tuple[int, ...]:
    return tuple(int(part) for part in line.split("."))


def _sort_key(line: str) -> tuple[int, ...]:
    # 4.0.0 comes before the line 4.0, which is 4.0.1 and later.
    release = _release(line)
    return release if len(release) > 2 else (*release, 1)


def _line_of(release: str) -> str | None:
    """Return the line of a release; None if there is none."""
    lines = _lines()
    if release in lines:
        return release
    shorter, dot, patch = release.rpartition(".")
    if shorter in lines and patch.isdigit():
        return shorter
    # Before 1.0 a line has three numbers. Two numbers mean the newest such line: 0.10 is 0.10.2.
    longer = [line for line in lines if line.startswith(release + ".") and line.startswith("0.")]
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


@cache
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
        """The name for `named`: "2.0", "3.9-zookeeper", "latest"."""
        self.api_versions = api_versions
        """API key -> least and greatest version in the ApiVersions response; before 0.10, which has no such API, the
        versions that are served. In the order of the keys, with internal APIs (`is_internal`)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KafkaVersion) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"KafkaVersion.named({self.name!r})"

    @classmethod
    def named(cls, name: str = LATEST) -> KafkaVersion:
        """Return the Kafka version of a release line, of the line of a patch release, or `LATEST`.

        Raises:
            UnknownKafkaVersion: no Kafka version has the name.
        """
        if name == LATEST:
            newest = LINES["kraft"][-1]
            return cls(LATEST, _release(newest), "kraft", _union())
        release, dash, mode_given = name.partition("-")
        line = _line_of(release)
        modes = [mode for mode in ("kraft", "zookeeper") if line in LINES[mode]]
        mode = mode_given if dash else next(iter(modes), "")
        if line is None or mode not in modes:
            raise UnknownKafkaVersion(name)
        full_name = line if mode == modes[0] else f"{line}-{mode}"
        return cls(full_name, _release(line), cast("Mode", mode), _api_versions(line, mode))

    @cached_property
    def has_api_versions(self) -> bool:
        """Whether ApiVersions exists: from 0.10.0 on. Before, the request closes the connection (BA-6)."""
        return self.at_least(0, 10)

    @cached_property
    def served(self) -> Mapping[int, tuple[int, int]]:
        """API key -> least and greatest version of the APIs that have a response, by key: those of `api_versions`, and
        from 3.7 on in KRaft those for the metrics of clients, which brokers advertise only with a plugin that receives
        them (measured on 3.6.2, 3.7.2 and 3.9.2)."""
        if not (self.is_kraft and self.at_least(3, 7)):
            return self.api_versions
        return MappingProxyType(dict(sorted({**self.api_versions, **TELEMETRY}.items())))

    @cached_property
    def closes_on_newer_versions(self) -> bool:
        """Whether a request version beyond the newest closes the connection. 0.8 reads such a request with the newest
        layout that it knows, except for OffsetCommit (fixtures/PROVENANCE.md)."""
        return self.at_least(0, 9)

    def is_internal(self, api_key: int) -> bool:
        """Return whether only brokers and controllers send requests of this API."""
        return api_key in INTERNAL

    def serves(self, api_key: int, api_version: int) -> bool:
        """Return whether a request of this version has a response; otherwise the connection closes (BA-6).

        These are the versions of `served`, except for Produce in 4.x: it advertises versions from 0 on, for the
        sake of a client library, and serves versions from 3 on (BA-25).
        """
        low, high = self.served.get(api_key, (0, -1))
        if api_key == PRODUCE and self.at_least(4, 0) and not self.is_latest:
            low = 3
        return low <= api_version <= high


def releases_serving(api_key: int, api_version: int) -> list[str]:
    """Return the release lines whose brokers serve this version, in at least one mode; oldest first."""
    return list(_serving(api_key, api_version))


@lru_cache(ROWS_KEPT)
def _serving(api_key: int, api_version: int) -> dict[str, None]:
    named = ((line, KafkaVersion.named(f"{line}-{mode}")) for line, mode in _lines_and_modes())
    return dict.fromkeys(line for line, version in named if version.serves(api_key, api_version))


def removed_in(api_key: int, api_version: int, target: KafkaVersion) -> bool:
    """Return whether an older release served a version that ``target`` does not serve.

    A version that is newer than ``target`` was not removed in it.
    """
    if target.serves(api_key, api_version):
        return False
    return any(_release(line) < target.release for line in releases_serving(api_key, api_version))
