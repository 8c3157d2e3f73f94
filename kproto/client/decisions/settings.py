"""The settings of KIP-842 and KIP-333, parsed and validated.

A configuration is a mapping from Kafka's setting names to strings or Python values; the case of values is ignored.

Source:
    KIP-842 and KIP-333. Comments say how kproto reads the ambiguous passages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from kproto.errors import UsageError

AUTO_OFFSET_RESET = "auto.offset.reset"
NO_INITIAL_OFFSET = "auto.offset.reset.on.no.initial.offset"
NO_INITIAL_OFFSET_ALIAS = "auto.offset.reset.on.initial.offset"
"""KIP-842 uses this name in its code block and the other one in its text; messages print the other one."""
INVALID_OFFSET = "auto.offset.reset.on.invalid.offset"
COMMIT_RESET_POSITION = "commit.reset.position"
PARALLEL = "enable.parallel.rebalance"
BUFFER1_BYTES = "parallel.rebalance.buffer.bytes"
MERGE = "parallel.rebalance.merge"
ORDER = "parallel.rebalance.order"
FETCH_MAX_BYTES = "fetch.max.bytes"
FETCH_MAX_BYTES_DEFAULT = 50 * 1024 * 1024
"""The default of Kafka's Java client and of librdkafka."""

PROPOSED_SETTINGS = frozenset(
    {
        NO_INITIAL_OFFSET,
        NO_INITIAL_OFFSET_ALIAS,
        INVALID_OFFSET,
        COMMIT_RESET_POSITION,
        PARALLEL,
        BUFFER1_BYTES,
        MERGE,
        ORDER,
    }
)
"""The settings that librdkafka does not have. `auto.offset.reset` is not among them: librdkafka receives it too."""

C = TypeVar("C", bound=Enum)


class ConfigError(UsageError):
    """A setting has an invalid value; the message names the setting."""


class AutoOffsetReset(Enum):
    """`auto.offset.reset`."""

    LATEST = "latest"
    EARLIEST = "earliest"
    NONE = "none"


class OnNoInitialOffset(Enum):
    """`auto.offset.reset.on.no.initial.offset`."""

    NONE = "none"
    LATEST_ON_START = "latest_on_start"
    EARLIEST_ON_START = "earliest_on_start"
    SAFE_LATEST = "safe_latest"
    LATEST = "latest"
    EARLIEST = "earliest"

    @property
    def depends_on_group_start(self) -> bool:
        """Whether the reset depends on the group start; such a reset is committed at once (CK-15)."""
        return self in _AT_GROUP_START


_AT_GROUP_START = frozenset(
    {OnNoInitialOffset.LATEST_ON_START, OnNoInitialOffset.EARLIEST_ON_START, OnNoInitialOffset.SAFE_LATEST}
)


class OnInvalidOffset(Enum):
    """`auto.offset.reset.on.invalid.offset`."""

    NONE = "none"
    NEAREST = "nearest"


class Order(Enum):
    """`parallel.rebalance.order`."""

    PARTITION = "partition"
    KEY = "key"


AUTO_OFFSET_RESET_VALUES = {
    "latest": AutoOffsetReset.LATEST,
    "earliest": AutoOffsetReset.EARLIEST,
    "none": AutoOffsetReset.NONE,
    # librdkafka's synonyms
    "largest": AutoOffsetReset.LATEST,
    "end": AutoOffsetReset.LATEST,
    "smallest": AutoOffsetReset.EARLIEST,
    "beginning": AutoOffsetReset.EARLIEST,
    "error": AutoOffsetReset.NONE,
}
TRUE_VALUES, FALSE_VALUES = frozenset({"true", "t", "1"}), frozenset({"false", "f", "0"})
"""librdkafka's values of a boolean setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of both proposals, and `auto.offset.reset`, which KIP-842 builds on."""

    auto_offset_reset: AutoOffsetReset = AutoOffsetReset.LATEST
    on_no_initial_offset: OnNoInitialOffset = OnNoInitialOffset.NONE
    on_invalid_offset: OnInvalidOffset = OnInvalidOffset.NONE
    commit_reset_position: bool = True
    parallel: bool = False
    buffer1_bytes: int = FETCH_MAX_BYTES_DEFAULT
    """Limit of buffer 1, per partition."""
    merge: bool = True
    order: Order = Order.PARTITION

    @property
    def resets(self) -> bool:
        """Whether a setting of KIP-842 is used."""
        return (
            self.on_no_initial_offset is not OnNoInitialOffset.NONE
            or self.on_invalid_offset is not OnInvalidOffset.NONE
        )


def parse(config: Mapping[str, object]) -> Settings:
    """Return the settings of a configuration.

    Raises:
        ConfigError: a value is invalid, or `auto.offset.reset.on.no.initial.offset` and its alias differ.
    """
    initial = {
        _choice(config, name, OnNoInitialOffset)
        for name in (NO_INITIAL_OFFSET, NO_INITIAL_OFFSET_ALIAS)
        if name in config
    }
    if len(initial) > 1:
        raise ConfigError(f"{NO_INITIAL_OFFSET} and its alias {NO_INITIAL_OFFSET_ALIAS} have different values")
    return Settings(
        auto_offset_reset=_auto_offset_reset(config),
        on_no_initial_offset=initial.pop() if initial else OnNoInitialOffset.NONE,
        on_invalid_offset=_choice(config, INVALID_OFFSET, OnInvalidOffset),
        commit_reset_position=_boolean(config, COMMIT_RESET_POSITION, True),
        parallel=_boolean(config, PARALLEL, False),
        buffer1_bytes=_buffer1_bytes(config),
        merge=_boolean(config, MERGE, True),
        order=_choice(config, ORDER, Order, Order.PARTITION.value),
    )


def boolean(value: object) -> bool | None:
    """Return the boolean that librdkafka reads from a value, or None if the value is invalid."""
    text = str(value).lower()
    return True if text in TRUE_VALUES else False if text in FALSE_VALUES else None


def _auto_offset_reset(config: Mapping[str, object]) -> AutoOffsetReset:
    text = str(config.get(AUTO_OFFSET_RESET, "latest")).lower()
    if text not in AUTO_OFFSET_RESET_VALUES:
        raise _invalid(config, AUTO_OFFSET_RESET, [each.value for each in AutoOffsetReset])
    return AUTO_OFFSET_RESET_VALUES[text]


def _choice(config: Mapping[str, object], name: str, kind: type[C], default: str = "none") -> C:
    try:
        return kind(str(config.get(name, default)).lower())
    except ValueError:
        raise _invalid(config, name, [str(each.value) for each in kind]) from None


def _boolean(config: Mapping[str, object], name: str, default: bool) -> bool:
    value = boolean(config.get(name, default))
    if value is None:
        raise _invalid(config, name, ["true", "false"])
    return value


def _invalid(config: Mapping[str, object], name: str, choices: Iterable[str]) -> ConfigError:
    return ConfigError(f"{name} is {config[name]!r}: must be one of {', '.join(choices)}")


def _buffer1_bytes(config: Mapping[str, object]) -> int:
    value = config.get(BUFFER1_BYTES, config.get(FETCH_MAX_BYTES, FETCH_MAX_BYTES_DEFAULT))
    try:
        size = int(str(value), base=0)
    except ValueError:
        size = 0
    if size > 0:
        return size
    if BUFFER1_BYTES in config:
        raise ConfigError(f"{BUFFER1_BYTES} is {value!r}: must be a number of bytes, at least 1")
    return FETCH_MAX_BYTES_DEFAULT  # librdkafka checks its own setting
