"""Whether the levels of features can change, and the error message if not (KIP-584, KIP-778).

In a KRaft cluster the quorum's controller decides. Brokers of a ZooKeeper cluster support no feature at all.

Source:
    UpdateFeatures responses of real brokers (fixtures/features).
"""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto_server.cluster.features import KRAFT_VERSION, METADATA_VERSION
from kproto_server.cluster.topics import Refusal
from kproto_server.releases.features import SUPPORTED_SINCE
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto_server.cluster.features import FinalizedFeatures


class UpgradeType(IntEnum):
    """What an update may do with the level of a feature."""

    UNKNOWN = 0
    """Also any other number."""
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3

    @classmethod
    def _missing_(cls, value: object) -> UpgradeType:
        return cls.UNKNOWN


class FeatureUpdate(NamedTuple):
    """The new level of a feature."""

    name: str
    level: int
    upgrade_type: UpgradeType


METADATA_CHANGES = frozenset({5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30, 33})
"""The levels of metadata.version whose records an older level cannot keep."""
LEAST_METADATA_VERSION = 4
"""The first level that is itself a record of the metadata, of 3.3-IV0."""
KNOWN_NAMES = frozenset({"test.feature.version", METADATA_VERSION, *(name for name, _, _ in SUPPORTED_SINCE)})
"""Names that releases know, also those that do not support the feature."""


class FeatureBehavior(VersionBehavior):
    """What Kafka releases do differently with updates of features."""

    @cached_property
    def updates_all_or_none(self) -> bool:
        """Whether the first error is that of the whole request; before, each feature has its own (measured on 3.9.2 and
        4.0.0)."""
        return self.at_least(4, 0)

    def unknown_name_problem(self, name: str, node_id: int) -> str:
        """Return the problem of level 0 of a feature that is not known, or empty text for none; up to 3.6 it is that a
        broker does not support it (measured on 3.3.2, 3.5.2, 3.6.2, 3.9.2 and 4.0.0)."""
        if self.at_least(4, 0):
            return "" if name in KNOWN_NAMES else f"Feature {name} not found."
        if self.at_least(3, 7) or name == METADATA_VERSION:
            return ""
        return f"Broker {node_id} does not support this feature."

    @cached_property
    def lost_metadata_problem(self) -> str:
        """The problem of a downgrade with loss (measured on 3.3.2, 3.5.2, 3.6.2 and 3.9.2)."""
        refusing = "Refusing to perform the requested downgrade because it might delete metadata information."
        if self.at_least(3, 7):
            return refusing
        return f"{refusing} Retry using UNSAFE_DOWNGRADE if you want to force the downgrade to proceed."

    def zero_level_problem(self, level: int) -> str:
        """Return the problem of an upgrade to a level below 1 in ZooKeeper mode (measured on 2.8.2)."""
        if self.at_least(3, 3):
            return f"versionLevel: {level} less than 1 without setting the SAFE downgradeType in the request."
        return f"maxVersionLevel: {level} less than 1 without setting the allowDowngrade flag to true in the request."

    @cached_property
    def kraft_version_stays(self) -> bool:
        """Whether updates of kraft.version are accepted and change nothing (measured on 3.9.2, 4.0.0 and 4.4.0)."""
        return self.release[:2] == (4, 0)

    @cached_property
    def kraft_version_only_rises(self) -> bool:
        """Whether kraft.version cannot be lowered (measured on 4.0.0 and 4.1.2)."""
        return self.at_least(4, 1)

    @cached_property
    def names_metadata_downgrade(self) -> bool:
        """Whether the message has the level before the downgrade too (measured on 4.1.2 and 4.2.2)."""
        return self.at_least(4, 2)

    @cached_property
    def success_message(self) -> str | None:
        """The message of a request without an error (measured on 2.8.2, 3.3.2, 3.9.2 and 4.0.0)."""
        return "" if self.is_kraft and not self.at_least(4, 0) else None

    @cached_property
    def feature_success_message(self) -> str | None:
        """The message of a feature without an error (measured on 3.9.2 and 4.0.0)."""
        return "NONE" if self.at_least(4, 0) else None


def check_quorum_update(
    update: FeatureUpdate, features: FinalizedFeatures, behavior: FeatureBehavior, controller_id: int
) -> Refusal | None:
    """Return why the controller of a quorum refuses an update; None if it does not."""
    problem = _problem(update, features, controller_id) or _later_problem(update, features, behavior, controller_id)
    if problem:
        return _invalid(f"Invalid update version {update.level} for feature {update.name}. {problem}")
    return _metadata_refusal(update, features, behavior) if update.name == METADATA_VERSION else None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_UPDATE_VERSION, message)


def _problem(update: FeatureUpdate, features: FinalizedFeatures, controller_id: int) -> str:
    if update.upgrade_type is UpgradeType.UNKNOWN:
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    supported = {name: (low, high) for name, low, high in features.of_release.supported}
    low, high = supported.get(update.name, (0, 0))
    if not low <= update.level <= high:
        what = f"only supports versions {low}-{high}" if high else "does not support this feature."
        return f"Local controller {controller_id} {what}"
    current = features.level(update.name)
    if update.level < current and update.upgrade_type is UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if update.level > current and update.upgrade_type is not UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return ""


def _later_problem(update: FeatureUpdate, features: FinalizedFeatures, behavior: FeatureBehavior, node_id: int) -> str:
    problem = behavior.unknown_name_problem(update.name, node_id)
    if problem:
        return problem
    is_lower = update.level < features.level(update.name)
    if update.name == KRAFT_VERSION and is_lower and behavior.kraft_version_only_rises:
        return "Can't downgrade the version of this feature."
    return ""


def _metadata_refusal(update: FeatureUpdate, features: FinalizedFeatures, behavior: FeatureBehavior) -> Refusal | None:
    if update.level < LEAST_METADATA_VERSION:
        return _invalid(f"Invalid metadata.version {update.level}. Unable to set a metadata.version less than 3.3-IV0")
    current = features.level(METADATA_VERSION)
    if not METADATA_CHANGES.intersection(range(update.level + 1, current + 1)):
        return None
    what = f"Invalid metadata.version {update.level}."
    if behavior.names_metadata_downgrade:
        what = f"Unsupported metadata.version downgrade from {current} to {update.level}."
    if update.upgrade_type is UpgradeType.UNSAFE_DOWNGRADE:
        return _invalid(f"{what} Unsafe metadata downgrade is not supported in this version.")
    return _invalid(f"{what} {behavior.lost_metadata_problem}")


def check_zookeeper_update(update: FeatureUpdate, behavior: FeatureBehavior) -> Refusal:
    """Return why the controller of a ZooKeeper cluster refuses an update."""
    if not update.name:
        message = "Feature name can not be empty."
    elif update.upgrade_type is UpgradeType.UNKNOWN:
        message = "Received unknown upgrade type."
    elif update.level < 1 and update.upgrade_type is not UpgradeType.UPGRADE:
        message = "Can not delete non-existing finalized feature."
    elif update.level < 1:
        message = f"Can not provide {behavior.zero_level_problem(update.level)}"
    else:
        message = "Could not apply finalized feature update because the provided feature is not supported."
    return Refusal(ErrorCode.INVALID_REQUEST, message)
