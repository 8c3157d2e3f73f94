"""What one request costs a broker process: CPU time and memory, from the sending of its bytes to the response."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kproto.errors import FrameTooLarge
from tests.network.raw_client import RawClient
from tests.robustness.broker_process import BrokerProcess
from tests.robustness.control_connection import cpu_s

RESPONSE_LIMIT_S = 5.0
"""After this time a request counts as one that waits for other clients, as a JoinGroup may."""
NO_RESPONSE = -1
"""Stands for the size of a response that does not come; the CPU time then is that of the control connection."""
CALIBRATION_REPEATS = 3
REFERENCE_CPU_S = 0.022
"""CPU time of `_known_work` on the machine for which the limits are meant."""


class Cost(NamedTuple):
    cpu_s: float
    memory_bytes: int
    """Peak of the resident memory above that before the request."""
    response_bytes: int
    """0: the broker has closed the connection; or `NO_RESPONSE`."""


def _known_work() -> int:
    """Do what a handler does: make tuples and look up names."""
    names = {f"name-{number}": number for number in range(20_000)}
    found = [(number, names[f"name-{number}"], (number,)) for number in range(20_000)]
    return sum(item[1] for item in sorted(found))


def slowness() -> float:
    """Return how many times slower than the reference machine this one is now; 1 if it is faster."""
    times = []
    for _ in range(CALIBRATION_REPEATS):
        before_s = time.thread_time()
        _known_work()
        times.append(time.thread_time() - before_s)
    return max(1.0, min(times) / REFERENCE_CPU_S)


def measured(broker: BrokerProcess, frame: bytes) -> Cost:
    """Send the bytes of one request on a new connection and return what it costs until its response, or the end."""
    with RawClient(broker.address) as client:
        return cost_of(broker, lambda: _response_bytes(client, frame))


def cost_of(broker: BrokerProcess, action: Callable[[], int]) -> Cost:
    """Return what a broker spends while an action runs, which returns the size of the responses."""
    reset_peak(broker.pid)
    memory_before, cpu_before_s = _status_bytes(broker.pid, "VmRSS"), cpu_s(broker.pid)
    response_bytes = action()
    return Cost(cpu_s(broker.pid) - cpu_before_s, _status_bytes(broker.pid, "VmHWM") - memory_before, response_bytes)


def _response_bytes(client: RawClient, frame: bytes) -> int:
    client.socket.settimeout(RESPONSE_LIMIT_S)
    try:
        client.socket.sendall(frame)
        return len(client.read_frame())
    except FrameTooLarge as error:
        return error.size
    except ConnectionError:
        return 0
    except TimeoutError:
        return NO_RESPONSE


def reset_peak(pid: int) -> None:
    """Have the kernel measure the peak of resident memory from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status_bytes(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(f"{name}:"))
