"""The driver contract for Python drivers: command line, output lines, records, and the scenarios of group members."""

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

LIMIT_S = 20.0
NOTES = {0: (42, "first: note"), 1: (7, '"zweite" Notiz - ü')}
"""Offset and metadata of each partition in commit-with-metadata."""
METADATA_MAX_BYTES = 4096
SECURITY: dict[str, str] = {
    name: os.environ[f"KAFKA_{name}"]
    for name in ("SECURITY_PROTOCOL", "SSL_CA_LOCATION", "SASL_MECHANISM", "SASL_USERNAME", "SASL_PASSWORD")
    if f"KAFKA_{name}" in os.environ
}
"""The security of the broker, as `kproto run` gives it to its command; empty: PLAINTEXT."""
LIBRDKAFKA_SECURITY: dict[str, str] = {name.lower().replace("_", "."): value for name, value in SECURITY.items()}
"""As settings of librdkafka."""
_print_lock = threading.Lock()


class Unsupported(Exception):
    """The client has no call for the scenario."""


@dataclass(frozen=True, slots=True)
class Run:
    """One scenario with one broker."""

    scenario: str
    bootstrap: str
    name: str
    """The name of the topic and of the group."""

    def report(self, result: str, value: object) -> None:
        _print({"scenario": self.scenario, "result": result, "value": value})


Scenario = Callable[[Run], None]
_scenarios: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Register a scenario; its name is the name of the function with hyphens."""
    _scenarios[function.__name__.replace("_", "-")] = function
    return function


def unsupported(name: str, reason: str) -> None:
    """Register a scenario that the client has no call for."""

    def fail(run: Run) -> None:
        raise Unsupported(reason)

    _scenarios[name] = fail


def main() -> None:
    """Run BOOTSTRAP PREFIX SCENARIO... from the command line, four at a time: most of a scenario is waiting."""
    bootstrap, prefix, *names = sys.argv[1:]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: _run(_scenarios[name], Run(name, bootstrap, f"{prefix}-{name}")), names))


def _run(function: Scenario, run: Run) -> None:
    try:
        function(run)
        _end("ok", run)
    except Unsupported as reason:
        _end("unsupported", run, str(reason))
    except Exception as error:  # noqa: BLE001  # an exception of the client ends this scenario only
        traceback.print_exc()
        _end("failed", run, f"{type(error).__name__}: {error}")


def _end(end: str, run: Run, reason: str | None = None) -> None:
    _print({"scenario": run.scenario, "end": end} | ({} if reason is None else {"reason": reason}))


def _print(line: Mapping[str, object]) -> None:
    with _print_lock:
        print(json.dumps(line), flush=True)


def key_of(number: int) -> bytes:
    return b"%d" % number


def value_of(number: int) -> bytes:
    return b"value %d" % number


def format_record(key: bytes | None, value: bytes | None) -> str:
    return f"{(key or b'').decode()}={(value or b'').decode()}"


def wait_until(is_done: Callable[[], bool], what: str) -> None:
    for _ in attempts(what):
        if is_done():
            return


def attempts(what: str) -> Iterator[None]:
    """Yield until the caller stops; raise TimeoutError after LIMIT_S."""
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        yield
        time.sleep(0.01)
    raise TimeoutError(what)


class GroupMember(Protocol):
    """A consumer of the run's group that polls in the background."""

    rebalances: int
    """How often partitions were assigned."""
    revoked: list[int]
    """The partitions of the last revocation."""

    def wait(self, count: int) -> list[int]:
        """Return the assigned partitions once there are `count`."""

    def close(self) -> None:
        """Leave the group, unless the member is static."""


class NewMember(Protocol):
    """Opens a member of the run's group."""

    def __call__(self, run: Run, *, instance_id: str | None = None, is_cooperative: bool = False) -> GroupMember: ...


def member_scenarios(new_member: NewMember) -> None:
    """Register the scenarios two-members, static-member and cooperative."""

    @scenario
    def two_members(run: Run) -> None:
        first, second = new_member(run), new_member(run)
        run.report("both", _wait_divided(first, second))
        _close_both(run, first, second)

    @scenario
    def static_member(run: Run) -> None:
        first, second = new_member(run, instance_id="one"), new_member(run, instance_id="two")
        run.report("both", _wait_divided(first, second))
        rebalances = second.rebalances
        first.close()
        again = new_member(run, instance_id="one")
        run.report("again", again.wait(2))
        run.report("rebalances", second.rebalances - rebalances)
        again.close()
        second.close()

    @scenario
    def cooperative(run: Run) -> None:
        first = new_member(run, is_cooperative=True)
        first.wait(4)
        second = new_member(run, is_cooperative=True)
        run.report("both", _wait_divided(first, second))
        run.report("revoked", first.revoked)
        _close_both(run, first, second)


def _wait_divided(first: GroupMember, second: GroupMember) -> list[list[int]]:
    # Until the second member has joined, the first one may have all partitions.
    first.wait(2)
    return [first.wait(2), second.wait(2)]


def _close_both(run: Run, first: GroupMember, second: GroupMember) -> None:
    first.close()
    run.report("alone", second.wait(4))
    second.close()
