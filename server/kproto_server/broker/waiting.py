"""How the queries of a broker wait: they look again and again until they see what they wait for, or time is over.

A method that waits is written once, as a function that returns a `Wait`. `blocking` makes the form for blocking code of
it, and `in_coroutine` the form for coroutines, whose name ends in ``_async``.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

from kproto.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

P = ParamSpec("P")
T = TypeVar("T")

CHECK_S = 0.005
"""How often a wait looks."""
SHARE = 4
"""A wait looks for at most a part of the time, one of so many and one: a look at 10,000 requests takes 50 ms, in which
the broker and its clients wait for the interpreter."""


class NotYet(NamedTuple):
    """What a wait sees before it is over."""

    seen: str | Callable[[], str]
    """The text of its TimeoutError, or a function that returns it."""


class Wait(Generic[T]):
    """What a method waits for.

    Raises:
        UsageError: ``timeout_s`` is no number from 0 on.
    """

    def __init__(self, look: Callable[[], T | NotYet], timeout_s: float) -> None:
        """``look``: called until it returns something else than `NotYet`; ``timeout_s``: for so much real time."""
        if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not timeout_s >= 0:
            raise UsageError(f"timeout_s is a number of seconds from 0 on, not {timeout_s!r}")
        self.look: Callable[[], T | NotYet] = look
        self._deadline_s = time.monotonic() + timeout_s

    def check_time(self, found: NotYet, hint: Callable[[], str] = str) -> None:
        """End the wait if time is over; ``hint``: returns the end of the error's text.

        Raises:
            TimeoutError: time is over; the text has what was seen.
        """
        if time.monotonic() > self._deadline_s:
            raise TimeoutError((found.seen if isinstance(found.seen, str) else found.seen()) + hint())


def wait(one: Wait[T], hint: Callable[[], str] = str) -> T:
    """Wait in blocking code, and return what the wait finds; ``hint``: returns the end of the text of its error.

    Raises:
        TimeoutError: time is over.
    """
    pause = threading.Event()
    began_s = time.monotonic()
    while isinstance(found := one.look(), NotYet):
        one.check_time(found, hint)
        pause.wait(_pause_s(began_s))
        began_s = time.monotonic()
    return found


def blocking(begin: Callable[P, Wait[T]]) -> Callable[P, T]:
    """Return the form of a wait for blocking code."""

    @functools.wraps(begin)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return wait(begin(*args, **kwargs), lambda: _hint(begin.__name__))

    return run


def in_coroutine(form: Callable[P, T]) -> Callable[[Callable[..., None]], Callable[P, Coroutine[Any, Any, T]]]:
    """Return a decorator that makes the form for coroutines of a wait that `blocking` has returned.

    It decorates a method with the name and a docstring only. Cancelled, the wait leaves nothing behind.
    """
    begin: Callable[P, Wait[T]] = form.__wrapped__  # type: ignore[attr-defined]  # set by `functools.wraps`

    def decorate(named: Callable[..., None]) -> Callable[P, Coroutine[Any, Any, T]]:
        async def run(*args: P.args, **kwargs: P.kwargs) -> T:
            import anyio

            one = begin(*args, **kwargs)
            began_s = time.monotonic()
            while isinstance(found := one.look(), NotYet):
                one.check_time(found)
                await anyio.sleep(_pause_s(began_s))
                began_s = time.monotonic()
            return found

        functools.update_wrapper(run, begin)
        run.__name__, run.__qualname__ = named.__name__, named.__qualname__
        doc = begin.__doc__ or ""
        run.__doc__ = (named.__doc__ or "") + doc[doc.find("\n\n") :]
        return run

    return decorate


def check_count(count: int, name: str = "count") -> None:
    """Refuse a count that is no number from 0 on.

    Raises:
        UsageError: it is none.
    """
    if type(count) is not int or count < 0:
        raise UsageError(f"{name} is a number from 0 on, not {count!r}")


def _pause_s(began_s: float) -> float:
    """Return the pause after a look that began at this time."""
    return max(CHECK_S, SHARE * (time.monotonic() - began_s))


def _hint(name: str) -> str:
    """Return what to do instead, for code that has blocked its own event loop."""
    if not _is_in_event_loop():
        return ""
    return f"; this call has stopped the event loop, and clients that run in it: await {name}_async instead"


def _is_in_event_loop() -> bool:
    trio, asyncio = sys.modules.get("trio"), sys.modules.get("asyncio")
    if trio is not None and trio.lowlevel.in_trio_task():
        return True
    return asyncio is not None and asyncio._get_running_loop() is not None
