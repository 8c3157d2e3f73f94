"""Decide what a target release would do with a request that a client sent to this broker.

Theory of operation. The version seen is not the only version that the client supports. Which other one it would choose
depends on how it chose this one:

- A client that negotiates (ApiVersions) takes the highest version that it and the broker share. A broker that serves
  everything (Kafka version ``latest``) so sees the client's highest. If the target's lowest is above that, nothing is
  shared: it breaks. If the target's highest is below it, the client steps down, or does without an API that the
  target does not have yet: no break. If this broker's own release was the limit, the client may know more: undecided.
- A client that does not negotiate always sends the same version. If the target does not serve it, the client breaks.
- ApiVersions is the negotiation itself: a broker responds to a version that is too new with the versions that it
  serves. Only releases before 0.10 have no such API; some clients work without it, others do not: undecided.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from kproto_server.releases.kafka_version import LATEST, KafkaVersion, kafka_version_names, releases_serving, removed_in

API_VERSIONS = 18


class Verdict(enum.Enum):
    """The result of a request of this version at the target; the value is the word in reports."""

    SERVED = "served"
    """The target serves it."""
    BREAKS = "breaks"
    """The target does not serve it, and the client was not seen to have an alternative."""
    NEWER = "newer"
    """The target is older than this version; the client negotiates, and steps down."""
    UNDECIDED = "undecided"
    """The target does not serve it, but the Kafka version of this broker limited the client's choice."""


class Releases(NamedTuple):
    """The release lines that serve a version, as seen from a target."""

    first: str | None
    """The oldest such release; None: no release serves it."""
    last_before_target: str | None
    """The newest such release before the target; None: there is none."""


class OtherPatchReleases(NamedTuple):
    """Patch releases of the target's line that serve other versions than the target."""

    name: str
    """The release or line that has them: ``4.0.0`` beside the line 4.0, ``4.0`` beside 4.0.0."""
    served: tuple[tuple[int, int], ...]
    """(API key, version) that they serve and the target does not."""
    not_served: tuple[tuple[int, int], ...]
    """(API key, version) that the target serves and they do not."""


def target_named(name: str | None) -> KafkaVersion:
    """Return the release to check against: by default, and for ``latest``, the newest one.

    Raises:
        UnknownKafkaVersion: no release has this name.
    """
    return KafkaVersion.named(kafka_version_names()[-1] if name in (None, LATEST) else str(name))


def verdict(
    api_key: int, api_version: int, *, negotiates: bool, kafka_version: KafkaVersion, target: KafkaVersion
) -> Verdict:
    """Return what `target` would do with a request that a broker of `kafka_version` received."""
    if target.serves(api_key, api_version):
        return Verdict.SERVED
    if api_key == API_VERSIONS:
        return Verdict.NEWER if target.has_api_versions else Verdict.UNDECIDED
    if not negotiates:
        return Verdict.BREAKS
    if not removed_in(api_key, api_version, target):
        return Verdict.NEWER
    return Verdict.UNDECIDED if _limited(api_key, api_version, kafka_version) else Verdict.BREAKS


def _limited(api_key: int, api_version: int, kafka_version: KafkaVersion) -> bool:
    """Return whether the version is this broker's highest, while newer releases have a higher one."""
    served = kafka_version.api_versions.get(api_key)
    return not kafka_version.is_latest and served is not None and api_version >= served[1]


def releases(api_key: int, api_version: int, target: KafkaVersion) -> Releases:
    """Return the releases that serve a version, seen from a target."""
    lines = kafka_version_names()
    before = lines[: lines.index(line_of(target))]
    serving = releases_serving(api_key, api_version)
    older = [line for line in serving if line in before]
    return Releases(serving[0] if serving else None, older[-1] if older else None)


def other_patch_releases(target: KafkaVersion) -> OtherPatchReleases | None:
    """Return the patch releases of the target's line that serve other versions; None: there are none."""
    line = line_of(target)
    names = kafka_version_names()
    related = [name for name in names if name.startswith(f"{line}.") or line.startswith(f"{name}.")]
    for other in map(KafkaVersion.named, related):
        here, there = _served(target), _served(other)
        if here != there:
            return OtherPatchReleases(other.name, tuple(sorted(there - here)), tuple(sorted(here - there)))
    return None


def _served(release: KafkaVersion) -> set[tuple[int, int]]:
    return {
        (api_key, api_version)
        for api_key, (low, high) in release.api_versions.items()
        for api_version in range(low, high + 1)
        if release.serves(api_key, api_version)
    }


def served_versions(api_key: int, target: KafkaVersion) -> tuple[int, int] | None:
    """Return the lowest and the highest version of an API that a release serves; None: it has no such API."""
    low, high = target.api_versions.get(api_key, (0, -1))
    versions = [version for version in range(low, high + 1) if target.serves(api_key, version)]
    return (versions[0], versions[-1]) if versions else None


def line_of(target: KafkaVersion) -> str:
    """Return the release line of a Kafka version, without its mode."""
    return target.name.partition("-")[0]
