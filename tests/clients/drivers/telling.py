"""What the drivers written in Python share: their command line, the lines that they print, and records."""

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

LIMIT_S = 20.0
NOTES = {0: (42, "first: note"), 1: (7, '"zweite" Notiz - ü')}
LARGEST = 4096
_printing = threading.Lock()


class Unsupported(Exception):
    """The client has no call for what the scenario does."""


@dataclass(frozen=True, slots=True)
class Run:
    """One scenario with one broker."""

    scenario: str
    bootstrap: str
    name: str
    """Of its topic and of its group."""

    def tell(self, fact: str, value: object) -> None:
        _print({"scenario": self.scenario, "fact": fact, "value": value})


Scenario = Callable[[Run], None]
_scenarios: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Register the function: its name, with hyphens, is the scenario's."""
    _scenarios[function.__name__.replace("_", "-")] = function
    return function


def unsupported(name: str, why: str) -> None:
    def refuse(run: Run) -> None:
        raise Unsupported(why)

    _scenarios[name] = refuse


def main() -> None:
    """Run BOOTSTRAP PREFIX SCENARIO... from the command line, a few at a time: most of a scenario is waiting."""
    bootstrap, prefix, *names = sys.argv[1:]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: _run(_scenarios[name], Run(name, bootstrap, f"{prefix}-{name}")), names))


def _run(function: Scenario, run: Run) -> None:
    try:
        function(run)
        end("ok", run)
    except Unsupported as reason:
        end("unsupported", run, str(reason))
    except Exception as error:  # noqa: BLE001  # whatever a client throws ends this scenario and no other
        traceback.print_exc()
        end("failed", run, f"{type(error).__name__}: {error}")


def end(how: str, run: Run, why: str | None = None) -> None:
    _print({"scenario": run.scenario, "end": how} | ({} if why is None else {"why": why}))


def _print(line: Mapping[str, object]) -> None:
    with _printing:
        print(json.dumps(line), flush=True)


def key_of(number: int) -> bytes:
    return b"%d" % number


def value_of(number: int) -> bytes:
    return b"value %d" % number


def shown(key: bytes | None, value: bytes | None) -> str:
    return f"{(key or b'').decode()}={(value or b'').decode()}"


def until(is_done: Callable[[], bool], what: str) -> None:
    for _ in tries(what):
        if is_done():
            return


def tries(what: str) -> Iterator[None]:
    """Yield until the caller stops; fail after LIMIT_S."""
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        yield
        time.sleep(0.01)
    raise TimeoutError(what)
