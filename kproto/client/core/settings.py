"""The settings that the client proposals add, parsed and checked.

A configuration is a mapping by Kafka's names, as clients take it. `parse` takes out what is in `OWN`; values may be
strings or what Python would use, and their case does not matter. Anything else fails here, with the setting's name.

Source:
    KIP-842 and KIP-333; where they are ambiguous, the comments say how they were read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

RESET = "auto.offset.reset"
NO_INITIAL_OFFSET = "auto.offset.reset.on.no.initial.offset"
NO_INITIAL_OFFSET_ALIAS = "auto.offset.reset.on.initial.offset"
"""KIP-842 calls the setting so in its code and otherwise in its text; the text's name is the one we print."""
INVALID_OFFSET = "auto.offset.reset.on.invalid.offset"
COMMIT_RESET_POSITION = "commit.reset.position"
PARALLEL = "enable.parallel.rebalance"
BUFFER_BYTES = "parallel.rebalance.buffer.bytes"
MERGE = "parallel.rebalance.merge"
FETCH_MAX_BYTES = "fetch.max.bytes"
FETCH_MAX_BYTES_DEFAULT = 50 * 1024 * 1024
"""Of Kafka's Java client and of librdkafka."""

OWN = frozenset(
    {
        NO_INITIAL_OFFSET,
        NO_INITIAL_OFFSET_ALIAS,
        INVALID_OFFSET,
        COMMIT_RESET_POSITION,
        PARALLEL,
        BUFFER_BYTES,
        MERGE,
    }
)
"""What `parse` takes out of a configuration; `auto.offset.reset` stays, for it is the client's own."""


C = TypeVar("C", bound=Enum)


class ConfigError(ValueError):
    """A setting has a value that it cannot have; the message names it."""


class Reset(Enum):
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
    def looks_at_start(self) -> bool:
        """Whether it matters if the group starts, and so whether a reset has to be committed at once."""
        return self in _AT_START


_AT_START = frozenset(
    {OnNoInitialOffset.LATEST_ON_START, OnNoInitialOffset.EARLIEST_ON_START, OnNoInitialOffset.SAFE_LATEST}
)


class OnInvalidOffset(Enum):
    """`auto.offset.reset.on.invalid.offset`."""

    NONE = "none"
    NEAREST = "nearest"


RESETS = {
    "latest": Reset.LATEST,
    "earliest": Reset.EARLIEST,
    "none": Reset.NONE,
    # librdkafka's other words for the same
    "largest": Reset.LATEST,
    "end": Reset.LATEST,
    "smallest": Reset.EARLIEST,
    "beginning": Reset.EARLIEST,
    "error": Reset.NONE,
}
YES, NO = frozenset({"true", "t", "1"}), frozenset({"false", "f", "0"})
"""librdkafka's words for a boolean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The proposals' settings, and the one that they build on."""

    reset: Reset = Reset.LATEST
    on_no_initial_offset: OnNoInitialOffset = OnNoInitialOffset.NONE
    on_invalid_offset: OnInvalidOffset = OnInvalidOffset.NONE
    commit_reset_position: bool = True
    parallel: bool = False
    buffer_bytes: int = FETCH_MAX_BYTES_DEFAULT
    """How much of the head may wait, per partition, while older records are caught up with."""
    merge: bool = True

    @property
    def resets(self) -> bool:
        """Whether one of KIP-842's settings is used."""
        return (
            self.on_no_initial_offset is not OnNoInitialOffset.NONE
            or self.on_invalid_offset is not OnInvalidOffset.NONE
        )


def parse(config: Mapping[str, object]) -> Settings:
    """Read the settings.

    Raises:
        ConfigError: a value is not one of the setting's, or the setting's two names have different values.
    """
    initial = {
        _choice(config, name, OnNoInitialOffset)
        for name in (NO_INITIAL_OFFSET, NO_INITIAL_OFFSET_ALIAS)
        if name in config
    }
    if len(initial) > 1:
        raise ConfigError(f"{NO_INITIAL_OFFSET} and its alias {NO_INITIAL_OFFSET_ALIAS} differ")
    return Settings(
        reset=_reset(config),
        on_no_initial_offset=initial.pop() if initial else OnNoInitialOffset.NONE,
        on_invalid_offset=_choice(config, INVALID_OFFSET, OnInvalidOffset),
        commit_reset_position=_boolean(config, COMMIT_RESET_POSITION, True),
        parallel=_boolean(config, PARALLEL, False),
        buffer_bytes=_size(config),
        merge=_boolean(config, MERGE, True),
    )


def boolean(value: object) -> bool | None:
    """What a value of a client's configuration means as a boolean; None: nothing."""
    word = str(value).lower()
    return True if word in YES else False if word in NO else None


def _reset(config: Mapping[str, object]) -> Reset:
    word = str(config.get(RESET, "latest")).lower()
    if word not in RESETS:
        raise ConfigError(f"{RESET} is {config[RESET]!r}: it can be latest, earliest or none")
    return RESETS[word]


def _choice(config: Mapping[str, object], name: str, kind: type[C]) -> C:
    word = str(config.get(name, "none")).lower()
    try:
        return kind(word)
    except ValueError:
        words = ", ".join(str(each.value) for each in kind)
        raise ConfigError(f"{name} is {config[name]!r}: it can be one of {words}") from None


def _boolean(config: Mapping[str, object], name: str, default: bool) -> bool:
    value = boolean(config.get(name, default))
    if value is None:
        raise ConfigError(f"{name} is {config[name]!r}: it can be true or false")
    return value


def _size(config: Mapping[str, object]) -> int:
    value = config.get(BUFFER_BYTES, config.get(FETCH_MAX_BYTES, FETCH_MAX_BYTES_DEFAULT))
    try:
        size = int(str(value))
    except ValueError:
        size = 0
    if size <= 0:
        raise ConfigError(f"{BUFFER_BYTES} is {value!r}: it is a number of bytes, at least 1")
    return size
