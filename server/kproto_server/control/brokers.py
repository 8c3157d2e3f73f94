"""Further brokers that tests start over HTTP, for a test file each: every one has ports, a clock and state of its own.

They run in this process, each in a thread, so one starts in a few milliseconds, and all of them end with the broker
whose control port has started them. Their operations are those of the control API below `/brokers/NUMBER`.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack
from weakref import WeakKeyDictionary

import trio

from kproto_server.broker.broker import Broker
from kproto_server.control.problem import not_found
from kproto_server.control.results import VARIABLES, Result
from kproto_server.control.schema import INTEGER, STRING, a_list, an_object
from kproto_server.security.oauth import JWKS_URL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto_server.broker.controls import BrokerControls
    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.control.message import HttpRequest
    from kproto_server.faults.rule import FaultRule
    from kproto_server.network.server import Server


BROKERS_MAX = 64
"""Further brokers that run at once."""
PREFIX = re.compile(r"/brokers/([0-9]{1,9})(/.*)", re.DOTALL)


class NewBroker(TypedDict, total=False):
    """The arguments of a further broker; `Broker` describes them. Files of this machine are no arguments."""

    kafka_version: str
    brokers: int
    started: int
    settings: Mapping[str, str | int | float | bool]
    port: int
    clock: str
    requests_kept: int
    faults: Sequence[FaultRule]
    forward_commits: bool
    conditional_commits: bool
    seed: Mapping[str, Any]
    tls: str
    sasl: str | Sequence[str]
    users: Mapping[str, str]
    listeners: str | Sequence[str]


class RunningBroker(NamedTuple):
    """A further broker."""

    number: int
    broker: Broker

    @property
    def path(self) -> str:
        """The path of its control API."""
        return f"/brokers/{self.number}"


class _Brokers:
    """The further brokers of one control port. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._is_over = False
        self.running: dict[int, RunningBroker] = {}

    def start(self, broker: Broker) -> RunningBroker:
        if len(self.running) >= BROKERS_MAX:
            raise RuntimeError(f"{BROKERS_MAX} brokers run: DELETE one of them first")
        broker.start()
        with self._lock:
            if not self._is_over:
                self._count += 1
                found = self.running[self._count] = RunningBroker(self._count, broker)
                return found
        broker.stop()
        raise RuntimeError("the broker stops")

    def stop(self, number: int) -> None:
        found = self.running.pop(number, None)
        if found is None:
            raise no_broker(number)
        found.broker.stop()

    def stop_all(self) -> None:
        with self._lock:
            self._is_over = True
            threads = [threading.Thread(target=one.broker.stop) for one in self.running.values()]
            self.running.clear()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    async def end(self, _: Server) -> None:
        """Stop all brokers when the broker of the control port ends.

        Cancellation:
            Shielded until they have stopped, which takes half a second at most.
        """
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self.stop_all)


_by_server: WeakKeyDictionary[Server, _Brokers] = WeakKeyDictionary()


def _brokers_of(server: Server) -> _Brokers:
    """Return the further brokers of a control port; runs in the broker's thread."""
    found = _by_server.get(server)
    if found is None:
        found = _by_server[server] = _Brokers()
        server.start_task(found.end)
    return found


def no_broker(number: int) -> Exception:
    """Return the problem of a number that no broker has."""
    return not_found(f"there is no broker {number}: POST /brokers starts one")


FILE_SETTINGS = frozenset({JWKS_URL, "ssl.keystore.location", "ssl.truststore.location"})
"""Settings whose values name files, which a client of the control port does not read through a broker."""


def start_broker(broker: BrokerControls, **options: Unpack[NewBroker]) -> RunningBroker:
    """Start a further broker with ports, clock and state of its own; it ends with DELETE, or with this broker.

    Its control API is below ``control_path``. It listens on the address of this broker.

    Raises:
        ValueError: an argument is wrong.
        CannotListen: the port is in use.
        RuntimeError: too many brokers run.
    """
    given: dict[str, Any] = dict(options)
    if "settings" in given:
        for name in FILE_SETTINGS & given["settings"].keys():
            raise ValueError(f"{name} may name a file of this machine: a further broker has none")
        given["settings"] = {name: _setting(value) for name, value in given["settings"].items()}
    brokers, host = broker.run(
        lambda server: (_brokers_of(server), next(iter(server.state.cluster.nodes.values())).host)
    )
    return brokers.start(Broker(host=host, **given))


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def running_brokers(broker: BrokerControls) -> list[RunningBroker]:
    """Return the further brokers, the oldest first."""
    return broker.run(lambda server: list(_brokers_of(server).running.values()))


def running_broker(broker: BrokerControls, number: int) -> RunningBroker:
    """Return a further broker.

    Raises:
        Problem: there is none with this number.
    """
    for one in running_brokers(broker):
        if one.number == number:
            return one
    raise no_broker(number)


def stop_broker(broker: BrokerControls, number: int) -> None:
    """Stop a further broker; its ports are free then.

    Raises:
        Problem: there is none with this number.
    """
    broker.run(_brokers_of).stop(number)


def split(request: HttpRequest) -> tuple[int | None, HttpRequest]:
    """Return the number of the broker that a request is for, and the request as that broker has it; None: the broker of
    the control port.

    Raises:
        Problem: it is for a broker that a further broker would have started.
    """
    found = PREFIX.match(request.target)
    if found is None:
        return None, request
    number, inner = int(found[1]), request._replace(target=found[2])
    if inner.path[0] == "brokers":
        raise not_found("a broker of POST /brokers starts no others")
    return number, inner


def access_to(server: Server, number: int | None) -> RunInBrokerThread:
    """Return how worker threads reach the broker with a number; None: that of the control port.

    Raises:
        Problem: there is none with this number.
    """
    if number is None:
        return lambda action: trio.from_thread.run_sync(action, server)
    found = _brokers_of(server).running.get(number)
    if found is None:
        raise no_broker(number)
    return found.broker.run


def _as_json(one: RunningBroker) -> dict[str, object]:
    return {
        "number": one.number,
        "bootstrap_servers": one.broker.bootstrap_servers,
        "kafka_version": one.broker.kafka_version.name,
        "control_path": one.path,
        "client_variables": one.broker.client_variables,
    }


_BROKER = an_object(
    {
        "number": INTEGER,
        **dict.fromkeys(("bootstrap_servers", "kafka_version", "control_path"), STRING),
        "client_variables": VARIABLES,
    }
)
BROKER = Result("a further broker", _BROKER, _as_json)
NEW_BROKER = BROKER._replace(status=201)
BROKERS = Result(
    "the further brokers, oldest first",
    an_object({"brokers": a_list(_BROKER)}),
    lambda found: {"brokers": [_as_json(one) for one in found]},
)
