"""Profiles: the wire surface and the quirks of a Kafka release (D3).

A profile says which versions of which API a broker advertises and serves, and answers every question of the kind "what
did that release do here?" by a named switch. Handlers ask the profile, they never compare releases themselves.

`Profile.named("2.0")` is the line 2.0 (so are "2.0.1" and "2.0.0"), "3.9-zookeeper" the same release in its other
mode, and "latest" no release at all: the APIs of all of them at once, oldest version to newest, with the quirks of
the newest.

Every switch names the rule or the measurement it rests on. Where a release between two measured ones is not named,
the switch turns at the first one that is known to have the new behaviour.
"""

from __future__ import annotations

from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, cast

from kproto_server._api_versions import HISTORY, INTERNAL, LINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto.codes import ErrorCode

__all__ = ["LATEST", "Mode", "Profile", "UnknownProfile", "profile_names", "releases_serving", "removed_in"]

Mode = Literal["zookeeper", "kraft"]
"""Where a broker keeps its cluster's metadata. From 3.3 to 3.9 there were both, before ZooKeeper, since KRaft."""

LATEST = "latest"
"""The default profile."""

PRODUCE = 0

_MODES: tuple[Mode, Mode] = ("zookeeper", "kraft")


class UnknownProfile(ValueError):
    """No release has this name."""

    def __init__(self, name: str) -> None:
        valid = ", ".join(profile_names())
        super().__init__(
            f"no Kafka release {name!r}: use {LATEST}, or one of {valid} "
            "(a patch release such as 2.0.1 too; from 3.3 to 3.9 with -zookeeper for that mode)"
        )
        self.name = name


def profile_names() -> list[str]:
    """The release lines that have a profile, oldest first."""
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
    lines = profile_names()
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


class Profile:
    """What a broker of one Kafka release offers, and where it differs from other releases.

    A switch is worked out at its first use and then a plain attribute. Two profiles of one name are equal.
    """

    def __init__(
        self, name: str, release: tuple[int, ...], mode: Mode, api_versions: Mapping[int, tuple[int, int]]
    ) -> None:
        self.name = name
        """As `named` takes it: "2.0", "3.9-zookeeper", "latest"."""
        self.release = release
        """The line in numbers; the newest release's for "latest"."""
        self.mode = mode
        self.api_versions = api_versions
        """API key: least and greatest version that ApiVersions names; before 0.10, which has no such API, that are
        served. Keys in rising order, as brokers send them. Internal APIs included (`is_internal`)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Profile) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Profile.named({self.name!r})"

    @classmethod
    def named(cls, name: str = LATEST) -> Profile:
        """The profile of a release line, of the line of a patch release, or `LATEST`.

        Raises:
            UnknownProfile: no release has this name.
        """
        if name == LATEST:
            newest = LINES["kraft"][-1]
            return cls(LATEST, _release(newest), "kraft", _union())
        asked, dash, mode_asked = name.partition("-")
        line = _line_of(asked)
        modes = [mode for mode in ("kraft", "zookeeper") if line in LINES[mode]]
        mode = mode_asked if dash else next(iter(modes), "")
        if line is None or mode not in modes:
            raise UnknownProfile(name)
        full_name = line if mode == modes[0] else f"{line}-{mode}"
        return cls(full_name, _release(line), cast("Mode", mode), _api_versions(line, mode))

    def at_least(self, *release: int) -> bool:
        """Whether this is that release or a later one: ``at_least(2, 1)``."""
        return self.release >= release

    @property
    def is_latest(self) -> bool:
        """Whether this is all releases at once."""
        return self.name == LATEST

    @property
    def is_kraft(self) -> bool:
        return self.mode == "kraft"

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

    # The wire as such.

    @cached_property
    def has_api_versions(self) -> bool:
        """Whether ApiVersions exists: from 0.10.0 on. Before, the request closes the connection (BA-6)."""
        return self.at_least(0, 10)

    @cached_property
    def checks_versions(self) -> bool:
        """Whether a version beyond the newest closes the connection. 0.8 reads it with the newest layout that it
        knows, but for OffsetCommit (fixtures/PROVENANCE.md)."""
        return self.at_least(0, 9)

    # ApiVersions.

    @cached_property
    def api_versions_downgrade_lists_itself(self) -> bool:
        """Whether the answer to an ApiVersions version that is too new names the versions of ApiVersions that would
        do: from 2.4 on (KIP-511); before, the list is empty (BA-21)."""
        return self.at_least(2, 4)

    # Offsets.

    @cached_property
    def new_group_coordinator(self) -> bool:
        """Whether the group coordinator is the one that 4.0 brought (it differs in OC-14, OC-21, OC-35, EX-3)."""
        return self.at_least(4, 0)

    @cached_property
    def merges_duplicate_partitions(self) -> bool:
        """Whether a partition named twice is answered once, and the last offset of a commit wins: up to 3.9 (OC-14,
        OF-17). There the answers stand in the order of a hash map; since, those that were refused before the
        coordinator was asked come first, the others in the order of the request."""
        return not self.new_group_coordinator

    def unknown_group_error(self, api_version: int) -> int:
        """The error of an OffsetCommit with a generation into a group that does not exist (OC-21)."""
        return 69 if self.new_group_coordinator and api_version >= 9 else 22

    @cached_property
    def offset_commit_v0_store(self) -> Literal["zookeeper", "unsupported", "absent"]:
        """What OffsetCommit and OffsetFetch v0 do: a store of their own; error 35 per partition in a KRaft broker up to
        3.9; or no such version (OC-20, OF-11). "latest" serves v0 with a store of its own, as any version."""
        if self.is_latest or not self.is_kraft:
            return "zookeeper"
        return "absent" if self.at_least(4, 0) else "unsupported"

    @cached_property
    def offsets_carry_expiry(self) -> bool:
        """Whether each offset has a deadline from the commit on, whatever becomes of its group: before KIP-211, that is
        up to 2.0 (OC-40, EX-40)."""
        return not self.at_least(2, 1)

    @cached_property
    def commit_timestamp_is_the_clients(self) -> bool:
        """Whether an explicit timestamp of OffsetCommit v1 is the time of the commit, from 2.1 on; from 0.9 to 2.0 it
        only moves the deadline, in 0.8.2 it is all that is stored (OC-40)."""
        return self.at_least(2, 1) or not self.at_least(0, 9)

    @cached_property
    def checks_partitions_of_commit(self) -> bool:
        """Whether a commit to a partition that its topic does not have is refused: from 2.0 on. Before, the topic is
        all that is looked for (OC-10 row 7; M[1.1.1, 2.0.1])."""
        return self.at_least(2, 0)

    @cached_property
    def stores_any_commit(self) -> bool:
        """Whether a commit v1 is stored without a look at topic, partition, generation or member: up to 0.8.2, whose
        coordinator knows no members (M[0.8.2.2, 0.9.0.1])."""
        return not self.at_least(0, 9)

    @cached_property
    def fetch_of_unknown_topic_error(self) -> int:
        """The error of OffsetFetch v1 and later for a topic that does not exist: none (OF-10), but 3 in 0.8.2
        (M[0.8.2.2, 0.9.0.1])."""
        return 0 if self.at_least(0, 9) else 3

    @cached_property
    def no_offsets_topic_error(self) -> int:
        """The error of a commit while there is no offsets topic: 16, but 15 in 0.8.2 (OC-10 row 12; M[0.8.2.2,
        0.11.0.3])."""
        return 16 if self.at_least(0, 9) else 15

    # Groups.

    @cached_property
    def offsets_make_a_group(self) -> bool:
        """Whether a group that only commits exists, Empty. In 0.9 its offsets are all there is of it: DescribeGroups
        says Dead, and a generation gets 22 (M[0.9.0.1, 0.10.2.2])."""
        return self.at_least(0, 10)

    @cached_property
    def merges_repeated_groups(self) -> bool:
        """Whether DescribeGroups answers a group named twice once: up to 2.2 (M[2.2.2, 2.3.1])."""
        return not self.at_least(2, 3)

    @cached_property
    def unasked_authorized_operations(self) -> int:
        """What stands for authorized operations that were not asked for, in DescribeGroups and Metadata: 0 in 2.3 and
        2.4, which have them first, then the least int32 (BA-36; M[2.4.1, 2.5.1])."""
        return -(2**31) if self.at_least(2, 5) else 0

    @cached_property
    def dead_group_error(self) -> int:
        """The error of a commit into a group that is just being removed: look for the coordinator again from 2.3 on,
        before that the member is unknown (OC-22)."""
        return 15 if self.at_least(2, 3) else 25

    @cached_property
    def rebalance_hides_membership(self) -> bool:
        """Whether everyone who commits while a group completes a rebalance is told to rejoin, whoever it is: up to 2.3
        (OC-22)."""
        return not self.at_least(2, 4)

    @cached_property
    def checks_instance_of_commit(self) -> bool:
        """Whether a commit with a group instance id that the group does not know is refused, from 3.0 on. Before, only
        one that another member has is (OC-23; M[2.8.2, 3.9.2])."""
        return self.at_least(3, 0)

    @cached_property
    def simple_commit_may_name_a_member(self) -> bool:
        """Whether a commit without a generation into an Empty group passes whatever member it names; from 3.0 to 3.2 a
        named member has to exist (KAFKA-14201; GroupCoordinator.validateOffsetCommit of 3.2.3 and 3.3.0)."""
        return not self.at_least(3, 0) or self.at_least(3, 3)

    @cached_property
    def completing_rebalance_name(self) -> str:
        """What the state between join and sync is called: renamed in 1.1 (M[0.11.0.3, 1.1.1])."""
        return "CompletingRebalance" if self.at_least(1, 1) else "AwaitingSync"

    @cached_property
    def group_authorized_operations(self) -> int:
        """Everything that may be done with a group, as bits: read, delete, describe, and from 4.0 on describe and alter
        its configs (M[3.9.2, 4.4.0])."""
        return 0b1101_0100_1000 if self.at_least(4, 0) else 0b0001_0100_1000

    @cached_property
    def group_filters_ignore_case(self) -> bool:
        """Whether the filters of ListGroups take a name in any letters: from 3.8 on (GP-42; M[2.8.2, 3.9.2])."""
        return self.at_least(3, 8)

    @cached_property
    def deleting_last_offset_removes_group(self) -> bool:
        """Whether an Empty group goes at once with the last offset that OffsetDelete or the deletion of a topic takes
        from it, rather than at the next sweep: up to 3.9 (M[2.8.2, 3.9.2, 4.4.0])."""
        return not self.new_group_coordinator

    # FindCoordinator.

    def find_coordinator_success_message(self, api_version: int) -> str | None:
        """The error_message of a coordinator that was found; v0 has no such field (BA-41; M[2.2.2, 2.3.1])."""
        if api_version >= 4:
            return ""
        return "NONE" if self.at_least(2, 3) else None

    def find_coordinator_error_message(self, error: ErrorCode) -> str | None:
        """The error_message of v1 to v3 where no coordinator was found (BA-42; M[2.2.2, 2.3.1])."""
        return error.message if self.at_least(2, 3) else None

    @cached_property
    def answers_unknown_coordinator_type(self) -> bool:
        """Whether a type that there is not is answered: from 2.3 on. Before, it closes the connection (BA-43; M[2.2.2,
        2.3.1])."""
        return self.at_least(2, 3)

    @cached_property
    def unknown_coordinator_type_error(self) -> int:
        """The error of that answer: -1 up to 2.7, then 42 (M[2.3.1 to 2.7.2, 2.8.2])."""
        return 42 if self.at_least(2, 8) else -1

    # Reading.

    @cached_property
    def refuses_unknown_list_offsets_timestamps(self) -> bool:
        """Whether a special timestamp that the version of ListOffsets does not know is error 35; before 3.9 it is taken
        for a time (BA-81)."""
        return self.at_least(3, 9)

    def fetch_unknown_partition_error(self, api_version: int) -> int:
        """The error of a Fetch by name for a partition that does not exist; 2.1 is mistaken below v10 (BA-74)."""
        return 76 if self.release == (2, 1) and api_version < 10 else 3

    # Topics.

    @cached_property
    def checks_topic_name_first(self) -> bool:
        """Whether Metadata answers 17 to a name that cannot be even where no topic may be created, rather than 3: from
        2.8 on, in both modes (BA-32; M[2.7.2, 2.8.2])."""
        return self.at_least(2, 8)

    @cached_property
    def metadata_makes_internal_topics_unasked(self) -> bool:
        """Whether Metadata that names an internal topic makes it, whatever settings and request allow: up to 2.7, in
        which too few brokers are then error 38. From 2.8 on a missing one is 3 (BA-50; M[2.7.2, 2.8.2])."""
        return not self.at_least(2, 8)

    @cached_property
    def creates_topics_with_defaults(self) -> bool:
        """Whether CreateTopics takes -1 partitions or replicas for the broker's default, in any version: from 2.4 on
        (BA-90; M[2.3.1, 2.4.1])."""
        return self.at_least(2, 4)

    @cached_property
    def bad_config_error(self) -> int:
        """The error of CreateTopics for a config value that cannot be: 40, but -1 up to 2.0 (M[2.0.1, 2.1.1])."""
        return 40 if self.at_least(2, 1) else -1

    @cached_property
    def auto_create_answers_leader_not_available(self) -> bool:
        """Whether Metadata answers 5 for a topic that it has just begun to create, rather than 3 (BA-32)."""
        return not self.is_kraft

    @cached_property
    def enforces_offsets_replication_factor(self) -> bool:
        """Whether the offsets topic is never made with fewer replicas than configured: from 0.11 on (KIP-115). Before,
        it gets as many as there are brokers (BA-50)."""
        return self.at_least(0, 11)

    # Records.

    @cached_property
    def rejects_unknown_special_timestamps(self) -> bool:
        """Whether ListOffsets answers 35 to a negative timestamp that means nothing in the version, before it looks for
        the topic. Earlier releases take it for a time (BA-81; M[3.3.2, 3.9.2])."""
        return self.at_least(3, 9)

    def unknown_topic_fetch_error(self, api_version: int) -> int:
        """The error of a Fetch by name from a topic or partition that there is not: 3, but by mistake 76 in 2.1 below
        v10 (BA-74; M[2.1.1, 2.2.2])."""
        return 76 if self.release == (2, 1) and api_version < 10 else 3


def releases_serving(api_key: int, api_version: int) -> list[str]:
    """The release lines, oldest first, of which a broker (in one of its modes at least) answers this version."""
    found = (line for line, mode in _surfaces() if Profile.named(f"{line}-{mode}").serves(api_key, api_version))
    return list(dict.fromkeys(found))


def removed_in(api_key: int, api_version: int, target: Profile) -> bool:
    """Whether `target` no longer serves a version that an older release did.

    A version that came only after `target` was not removed in it.
    """
    if target.serves(api_key, api_version):
        return False
    return any(_release(line) < target.release for line in releases_serving(api_key, api_version))
