"""Measurements in a process of their own: no client has the memory and the threads of another one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter, process_time
from typing import NamedTuple, ParamSpec, TypeVar

CLIENTS = ("kproto.client.aio", "aiokafka", "confluent_kafka.admin")
"""Modules that the server of processes imports, so that a process costs no imports."""
P = ParamSpec("P")
T = TypeVar("T")


class Speed(NamedTuple):
    """Messages per second, and per CPU second of the process."""

    per_s: float
    per_cpu_s: float


class Clock:
    """The time and the CPU time since its creation."""

    def __init__(self) -> None:
        self._started_at, self._cpu_s = perf_counter(), process_time()

    def speed(self, messages: int) -> Speed:
        return Speed(messages / (perf_counter() - self._started_at), messages / (process_time() - self._cpu_s))


def in_own_process(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a function of a module in a new process; raise its exception."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["bench.client", *CLIENTS])
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(function, *args, **kwargs).result()
