"""A cluster of kproto for the scripts that real clusters run, too."""

from __future__ import annotations

from dataclasses import dataclass

from kproto_server.broker.broker import Broker


@dataclass(frozen=True, slots=True)
class KprotoCluster:
    """An in-process kproto cluster for a script."""

    broker: Broker

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap_servers

    def start(self, node_id: int) -> None:
        self.broker.start_node(node_id)

    def stop(self, node_id: int) -> None:
        self.broker.stop_node(node_id)

    def kill(self, node_id: int) -> None:
        self.broker.cluster.crash(node_id)

    def wait_noticed(self) -> None:
        self.broker.clock.advance(seconds=20)
