"""The configurations of the clients inside, made from the one that the user gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kproto.client.core.settings import OWN, RESET, OnInvalidOffset, OnNoInitialOffset, Reset, Settings, boolean, parse

AUTO_COMMIT = "enable.auto.commit"
AUTO_COMMIT_INTERVAL = "auto.commit.interval.ms"
AUTO_COMMIT_INTERVAL_DEFAULT_MS = 5000
AUTO_STORE = "enable.auto.offset.store"
COMMIT_CALLBACK = "on_commit"
OF_MEMBERS = ("group.instance.id", "group.protocol", "group.remote.assignor", "partition.assignment.strategy")
OF_REPORTS = ("on_commit", "stats_cb", "error_cb", "throttle_cb", "statistics.interval.ms")
"""What the user hears of one consumer; the second is none of hers."""
OF_CONNECTIONS = (
    "bootstrap.servers",
    "metadata.broker.list",
    "client.",
    "security.",
    "sasl.",
    "ssl.",
    "enable.ssl.",
    "enable.sasl.",
    "oauth",
    "socket.",
    "reconnect.",
    "broker.",
    "api.version.",
    "logger",
    "log_level",
    "plugin.library.paths",
    "https.",
)
"""How settings begin that all kinds of clients have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What the user wants, and what the clients inside get."""

    given: Mapping[str, Any]
    """Without our own settings, and flat."""
    settings: Settings

    @property
    def group_id(self) -> str:
        return str(self.given["group.id"])

    @property
    def is_used(self) -> bool:
        """Whether any of the proposals is; if not, the wrapped consumer is left to itself."""
        return self.settings.resets or self.settings.parallel

    @property
    def commits_itself(self) -> bool:
        """Whether commits are ours to make, since librdkafka's would say the wrong thing.

        It commits where the head is, not where the user is (KIP-333); and without metadata, so that the group's start
        time would be forgotten (safe_latest).
        """
        return self.settings.parallel or self.settings.on_no_initial_offset is OnNoInitialOffset.SAFE_LATEST

    @property
    def auto_commit(self) -> bool:
        return boolean(self.given.get(AUTO_COMMIT, True)) is not False

    @property
    def auto_store(self) -> bool:
        return boolean(self.given.get(AUTO_STORE, True)) is not False

    @property
    def auto_commit_interval_s(self) -> float:
        return float(self.given.get(AUTO_COMMIT_INTERVAL, AUTO_COMMIT_INTERVAL_DEFAULT_MS)) / 1000

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep partitions over a rebalance, so that assignments are told as differences."""
        strategies = str(self.given.get("partition.assignment.strategy", ""))
        return "cooperative" in strategies or str(self.given.get("group.protocol", "")).lower() == "consumer"

    def for_consumer(self, on_commit: Callable[..., None]) -> dict[str, Any]:
        """For the group's member."""
        config = dict(self.given)
        if self.settings.on_invalid_offset is OnInvalidOffset.NEAREST or self.settings.reset is Reset.NONE:
            config[RESET] = "error"  # with nearest, an offset out of range has to come to us
        if self.commits_itself:
            config[AUTO_COMMIT] = False
            config[COMMIT_CALLBACK] = on_commit
        return config

    def for_catch_up(self) -> dict[str, Any]:
        """For a consumer of no group that reads what it is assigned."""
        left_out = {*OF_MEMBERS, *OF_REPORTS}
        return {
            **{name: value for name, value in self.given.items() if name not in left_out},
            AUTO_COMMIT: False,
            AUTO_STORE: False,
            "enable.partition.eof": True,
            RESET: "error",
        }

    def for_connection(self) -> dict[str, Any]:
        """For a client that does not consume."""
        return {name: value for name, value in self.given.items() if name.startswith(OF_CONNECTIONS)}


def read(config: Mapping[str, Any]) -> Configuration:
    """Divide a configuration into our settings and the client's.

    Raises:
        ConfigError: one of our settings has a value that it cannot have.
    """
    flat = {**config, **config.get("default.topic.config", {})}
    flat.pop("default.topic.config", None)
    given = {name: value for name, value in flat.items() if name not in OWN}
    return Configuration(given=given, settings=parse(flat))
