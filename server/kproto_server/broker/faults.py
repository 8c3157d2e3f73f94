"""The fault rules of a running broker, as a test adds and asserts on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from kproto.errors import UsageError
from kproto_server.broker.block import EndsWithBlock
from kproto_server.broker.waiting import NotYet, Wait, blocking, check_count, in_coroutine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.faults.rule import FaultRule
    from kproto_server.faults.rules import Rule
    from kproto_server.network.server import Server


class BrokerFault(EndsWithBlock):
    """One fault rule of a running broker. As a context manager, ``with`` or ``async with``, it ends with the block."""

    def __init__(self, run: RunInBrokerThread, rule: Rule) -> None:
        self._run = run
        self._rule = rule

    @property
    def number(self) -> int:
        """The number of the rule: the first one since the broker's start, or `Broker.reset`, is 1."""
        return self._rule.number

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of the rule."""
        return dict(self._rule.given)

    @property
    def fired(self) -> int:
        """The number of requests that the rule has acted on."""
        return self._rule.fired

    @property
    def matched(self) -> int:
        """The number of requests that met the conditions, in the time of the rule; it may not act on all of them."""
        return self._rule.matched

    def remove(self) -> None:
        """End the rule, unless it has ended. Requests that it has acted on stay without a response, or delayed."""
        self._run(lambda server: server.faults.remove(self._rule))

    _end = remove

    @blocking
    def wait_fired(self, count: int = 1, *, timeout_s: float = 10.0) -> Wait[None]:
        """Wait until the rule has acted on ``count`` requests.

        Raises:
            TimeoutError: it has acted on fewer after ``timeout_s`` of real time.
            UsageError: ``count`` or ``timeout_s`` is no number from 0 on.
        """
        check_count(count)

        def look() -> NotYet | None:
            return None if self.fired >= count else NotYet(f"{self!r}, not {count} times in {timeout_s} s")

        return Wait(look, timeout_s)

    @in_coroutine(wait_fired)
    def wait_fired_async(self) -> None:
        """As `wait_fired`, for a coroutine: other tasks run meanwhile."""

    def __repr__(self) -> str:
        rule = self._rule
        times = "" if rule.rule.times is None else f" of {rule.rule.times}"
        return f"<fault rule {rule.number}: {rule}; fired {self.fired}{times}, matched {self.matched}>"


class BrokerFaults:
    """The fault rules of a running broker, oldest first. ``FAULTS.md`` describes them."""

    def __init__(self, run: RunInBrokerThread) -> None:
        self._run = run

    def add(self, **rule: Unpack[FaultRule]) -> BrokerFault:
        """Add a rule; the oldest rule that acts on a request is the only one that does.

        Raises:
            UsageError: an argument is wrong, no request can meet the conditions, or the action is not possible.
        """
        return BrokerFault(self._run, self._run(lambda server: server.faults.add(rule)))

    def load(self, path: str) -> tuple[BrokerFault, ...]:
        """Add the rules of a YAML file, and its conditions of the network.

        Raises:
            UsageError: the file can't be read, a rule is wrong (the text has its number), or the file has what only a
                broker's start can have. Nothing was added.
        """
        from kproto_server.broker.fault_file import EXTENSIONS, checked_faults

        def add(server: Server) -> list[Rule]:
            faults = checked_faults(path, server.state.kafka_version, server.state.cluster.nodes)
            for name in EXTENSIONS:
                if getattr(faults, name):
                    raise UsageError(f"{path}: {name} is for a broker's start: Broker({name}=True)")
            for node_id, conditions in faults.network:
                server.nodes.set_network(node_id, conditions)
            return [server.faults.add(rule) for rule in faults.rules]

        return tuple(BrokerFault(self._run, rule) for rule in self._run(add))

    def __iter__(self) -> Iterator[BrokerFault]:
        rules = self._run(lambda server: list(server.faults.rules))
        return iter([BrokerFault(self._run, rule) for rule in rules])

    def __len__(self) -> int:
        """Return the number of rules."""
        return self._run(lambda server: len(server.faults.rules))

    def clear(self) -> None:
        """End all rules."""
        self._run(lambda server: server.faults.clear())
