"""All servers of one run. Each is started once, even if it is compared with kproto in two durabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from typing import NamedTuple, TypeVar

from bench.model import Metric, Missing, Note, Row, best_of
from bench.peers.durability import Durability
from bench.peers.kproto import BUILDS
from bench.peers.server import DEFAULTS, Peer, Server, started, wait_until_listening

C = TypeVar("C")
F = TypeVar("F")
Samples = Mapping["Target", Sequence[Mapping[str, float]]]
"""The figures of each server, round by round."""


class Target(NamedTuple):
    """A server of the run."""

    name: str
    runs: Durability
    """The durability that the server runs with; Kafka's can differ from the row's."""

    def __str__(self) -> str:
        return f"{self.name} ({self.runs})"


def best(samples: Samples, metrics: Sequence[Metric]) -> dict[Target, dict[str, float]]:
    """Return the best figures of each server over its rounds."""
    return {target: best_of(rounds, metrics) for target, rounds in samples.items()}


class Fleet:
    """The running servers, and the servers in the row of each durability."""

    def __init__(self, stack: ExitStack, note: Note, settings: Mapping[str, str] = DEFAULTS) -> None:
        """Create an empty fleet of servers with these settings. Leaving ``stack``, the caller's, stops the servers."""
        self.servers: dict[Target, Server] = {}
        self.rows: dict[Durability, list[Target]] = {}
        self._left_out: set[Target] = set()
        self._stack = stack
        self._note = note
        self._settings = settings

    def start(self, peers: Iterable[Peer], durabilities: Iterable[Durability], partitions: Sequence[int]) -> None:
        """Start the servers of these rows; note each one that is missing and leave it out."""
        known = list(peers)
        for durability in durabilities:
            wanted = {Target(peer.name, peer.beside[durability]): peer for peer in known if durability in peer.beside}
            for target, peer in wanted.items():
                if target not in self.servers and target not in self._left_out:
                    self._start(peer, target, partitions)
            self.rows[durability] = [target for target in wanted if target in self.servers]

    def _start(self, peer: Peer, target: Target, partitions: Sequence[int]) -> None:
        try:
            launch = self._stack.enter_context(peer.ready(partitions, target.runs, self._settings))
        except Missing as missing:
            self._left_out.add(target)
            self._note(f"{target} left out: {missing}")
            return
        self._note(f"{target} {launch.version}")
        server = self._stack.enter_context(started(launch))
        wait_until_listening(server)
        self.servers[target] = server

    def rounds(self, count: int, cases: Sequence[C]) -> Iterator[tuple[int, C, Target, Server]]:
        """Yield the number of each round, and in each round each case with each server.

        Every other round has the servers backwards: what one leaves behind, as pages that the machine takes back, costs
        the next one up to a tenth.
        """
        servers = list(self.servers.items())
        for nth in range(count):
            for case, (target, server) in product(cases, servers[::-1] if nth % 2 else servers):
                yield nth, case, target, server

    def measured(
        self, bench: str, case: str, durability: Durability, samples: Samples, metrics: Sequence[Metric]
    ) -> Row:
        """Return the row of a case: the best figures of each server, and for builds of kproto those of each round."""
        rounds = {target: rounds for target, rounds in samples.items() if target.name in BUILDS}
        figures = self.row(durability, best(samples, metrics))
        return Row(bench=bench, case=case, figures=figures, rounds=self.row(durability, rounds))

    def row(self, durability: Durability, figures: Mapping[Target, F]) -> dict[str, F]:
        """Return the figures of one row by server name."""
        return {target.name: figures[target] for target in self.rows[durability] if target in figures}
