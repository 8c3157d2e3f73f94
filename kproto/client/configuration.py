"""The configurations of the wrapped consumer, of consumer 2 and of the checkpoint clients, made from the user's one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kproto.client.decisions.events import Event
from kproto.client.decisions.settings import (
    AUTO_OFFSET_RESET,
    ORDER,
    PROPOSED_SETTINGS,
    AutoOffsetReset,
    ConfigError,
    OnNoInitialOffset,
    Order,
    Settings,
    boolean,
    parse,
)
from kproto.client.further_clients import LOGGER, FurtherClients

AUTO_COMMIT = "enable.auto.commit"
AUTO_COMMIT_INTERVAL = "auto.commit.interval.ms"
AUTO_COMMIT_INTERVAL_DEFAULT_MS = 5000
AUTO_STORE = "enable.auto.offset.store"
COMMIT_CALLBACK = "on_commit"
EVENT_CALLBACK = "event_cb"
ASSIGNOR = "partition.assignment.strategy"
GROUP_PROTOCOL = "group.protocol"
MEMBER_SETTINGS = ("group.instance.id", GROUP_PROTOCOL, "group.remote.assignor", ASSIGNOR)
CALLBACK_SETTINGS = (COMMIT_CALLBACK, "stats_cb", "error_cb", "throttle_cb", "statistics.interval.ms")
"""Callbacks, and the interval of one. `FurtherClients` gives them to clients that are polled, except for commits."""
LOG_SETTINGS = (LOGGER, "debug", "log_level")
CONNECTION_SETTINGS = (
    "bootstrap.servers",
    "metadata.broker.list",
    "client.",
    "security.",
    "sasl.",
    "ssl.",
    "enable.ssl.",
    "enable.sasl.",
    "enable.metrics.",
    "oauth",
    "socket.",
    "reconnect.",
    "broker.",
    "api.version.",
    *LOG_SETTINGS,
    "plugin.library.paths",
    "https.",
)
"""Names and prefixes of the settings that consumers, producers and admin clients share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The user's configuration, divided into the settings of the proposals and those of librdkafka."""

    librdkafka: Mapping[str, Any]
    """Without the settings of the proposals and the event callback; ``default.topic.config`` is merged into it."""
    settings: Settings
    clients: FurtherClients
    event_callback: Callable[[Event], object] | None = None

    @property
    def group_id(self) -> str:
        return str(self.librdkafka["group.id"])

    @property
    def uses_proposals(self) -> bool:
        """Whether a setting of KIP-842 or KIP-333 is used. If not, `Consumer` adds nothing to confluent-kafka's."""
        return self.settings.resets or self.settings.parallel

    @property
    def stores_positions(self) -> bool:
        """Whether kproto, instead of librdkafka, stores the positions that automatic commits commit.

        With KIP-333, librdkafka would commit the position of consumer 1 instead of the user's. With ``safe_latest``,
        librdkafka would commit without metadata and so lose the start time of the group.
        """
        return self.settings.parallel or self.settings.on_no_initial_offset is OnNoInitialOffset.SAFE_LATEST

    @property
    def auto_commit(self) -> bool:
        return boolean(self.librdkafka.get(AUTO_COMMIT, True)) is not False

    @property
    def auto_store(self) -> bool:
        return boolean(self.librdkafka.get(AUTO_STORE, True)) is not False

    @property
    def auto_commit_interval_s(self) -> float:
        interval_ms = float(self.librdkafka.get(AUTO_COMMIT_INTERVAL, AUTO_COMMIT_INTERVAL_DEFAULT_MS))
        return (interval_ms or AUTO_COMMIT_INTERVAL_DEFAULT_MS) / 1000  # with 0, librdkafka has no timer

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep partitions during a rebalance, so that assignments are incremental."""
        strategies = str(self.librdkafka.get(ASSIGNOR, ""))
        return "cooperative" in strategies or str(self.librdkafka.get(GROUP_PROTOCOL, "")).lower() == "consumer"

    def for_consumer(self, on_commit: Callable[..., None]) -> dict[str, Any]:
        """Return the configuration of the group's member (consumer 1)."""
        config = dict(self.librdkafka)
        # With the proposals, librdkafka has to report an offset out of range instead of resetting it.
        if self.uses_proposals or self.settings.auto_offset_reset is AutoOffsetReset.NONE:
            config[AUTO_OFFSET_RESET] = "error"
        if self.stores_positions and self.auto_commit:
            config[AUTO_STORE] = False
        commits = self.stores_positions or self.settings.on_no_initial_offset.depends_on_group_start
        if commits and callable(config.get(COMMIT_CALLBACK, on_commit)):  # otherwise confluent-kafka refuses it
            config[COMMIT_CALLBACK] = on_commit
        return config

    def for_consumer2(self) -> dict[str, Any]:
        """Return the configuration of a consumer outside the group that reads assigned partitions."""
        omitted = {*MEMBER_SETTINGS, *CALLBACK_SETTINGS}
        return {
            **{name: value for name, value in self.librdkafka.items() if name not in omitted},
            AUTO_COMMIT: False,
            AUTO_STORE: False,
            "enable.partition.eof": True,
            AUTO_OFFSET_RESET: "error",
        }

    def for_queries(self) -> dict[str, Any]:
        """Return the configuration of a consumer of queries: its log lines go to the user's logger only."""
        config = self.for_consumer2()
        if LOGGER in config:
            return config
        return {**{name: value for name, value in config.items() if name not in LOG_SETTINGS}, "log_level": 0}

    def for_connection(self) -> dict[str, Any]:
        """Return the configuration of a producer or an admin client."""
        return {name: value for name, value in self.librdkafka.items() if name.startswith(CONNECTION_SETTINGS)}


def read(config: Mapping[str, Any]) -> Configuration:
    """Divide the user's configuration.

    Raises:
        ConfigError: a setting of the proposals has an invalid value.
        TypeError: the event callback cannot be called.
    """
    flat = {**config, **config.get("default.topic.config", {})}
    flat.pop("default.topic.config", None)
    if not callable(flat.get(EVENT_CALLBACK, print)):
        raise TypeError(f"expected {EVENT_CALLBACK} property as a callable function")
    librdkafka = {name: value for name, value in flat.items() if name not in {*PROPOSED_SETTINGS, EVENT_CALLBACK}}
    configuration = Configuration(
        librdkafka=librdkafka,
        settings=parse(flat),
        clients=FurtherClients(librdkafka),
        event_callback=flat.get(EVENT_CALLBACK),
    )
    if configuration.settings.order is Order.KEY and not configuration.auto_store:
        # One stored offset cannot say which records of the range and which after it are processed.
        raise ConfigError(f"{ORDER} can't be 'key' with {AUTO_STORE}=false, nor with kproto.client.aio")
    return configuration
