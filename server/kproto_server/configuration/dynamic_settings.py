"""The current settings of all nodes: AlterConfigs changes some of them while brokers run (KIP-226)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.configuration.settings import Settings

ALL_NODES = ""
"""The name of the broker resource that stands for all nodes."""


class DynamicSettings:
    """The settings at start, and the dynamic configs of all nodes together and of each node."""

    __slots__ = (
        "_of_node", "_on_change", "client_metrics", "client_metrics_version", "configs", "current", "groups",
    )  # fmt: skip

    def __init__(self, settings: Settings, on_change: Callable[[], object]) -> None:
        """``on_change`` is called after each change, because decisions from the old settings are no longer valid."""
        self._on_change = on_change
        self.current: Settings = settings
        """The settings that apply to all nodes; a change replaces the object."""
        self.configs: dict[str, dict[str, str]] = {ALL_NODES: settings.first_dynamic_configs()}
        """The dynamic configs by node id, and those of `ALL_NODES`."""
        self._of_node: dict[int, Settings] = {}
        self.groups: dict[str, dict[str, str]] = {}
        """The configs of groups that have their own, by group id (KIP-848, KIP-932)."""
        self.client_metrics: dict[str, dict[str, str]] = {}
        """The configs of client metrics resources by name (KIP-714)."""
        self.client_metrics_version: int = 0
        """The number of changes of `client_metrics`."""

    def of(self, node_id: int) -> Settings:
        """Return the settings of one node."""
        return self._of_node.get(node_id, self.current)

    def change(self, name: str, configs: dict[str, str]) -> None:
        """Replace the dynamic configs of one node, or of `ALL_NODES`."""
        self.configs[name] = configs
        of_all = self.configs[ALL_NODES]
        self.current = self.current.with_dynamic(of_all)
        self._of_node = {
            int(node): self.current.with_dynamic(of_all, of_one)
            for node, of_one in self.configs.items()
            if node and of_one
        }
        self._on_change()

    def change_group(self, group_id: str, configs: dict[str, str]) -> None:
        """Replace the configs of a group; a group without any is not kept."""
        if configs:
            self.groups[group_id] = configs
        else:
            self.groups.pop(group_id, None)
        self._on_change()

    def change_client_metrics(self, name: str, configs: dict[str, str]) -> None:
        """Replace the configs of a client metrics resource; one without any is not kept."""
        if configs:
            self.client_metrics[name] = configs
        else:
            self.client_metrics.pop(name, None)
        self.client_metrics_version += 1

    def reset(self) -> None:
        """Drop all changes."""
        self.configs.clear()
        self.groups.clear()
        self.client_metrics.clear()
        self.client_metrics_version += 1
        self.change(ALL_NODES, self.current.first_dynamic_configs())
