"""One broker of a cluster."""

from __future__ import annotations


class Node:
    """One broker of the cluster, with the address that clients get."""

    __slots__ = ("alive", "host", "node_id", "others", "port", "rack", "registered")

    def __init__(self, node_id: int, host: str, port: int, rack: str | None = None, *, alive: bool = True) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.others: dict[str, tuple[str, int]] = {}
        """Hosts and ports of the listeners beside the main one, by name."""
        self.rack: str | None = rack
        self.alive: bool = alive
        self.registered: bool = alive
        """Whether the node was alive and not unregistered since: KRaft counts a stopped broker, ZooKeeper forgets it
        (BA-52)."""

    def address(self, listener: str) -> tuple[str, int]:
        """Return the host and the port that clients of a listener get; the main one has an empty name."""
        return self.others[listener] if listener else (self.host, self.port)

    def __repr__(self) -> str:
        return f"Node({self.node_id}, {self.host}:{self.port}, {'alive' if self.alive else 'stopped'})"
