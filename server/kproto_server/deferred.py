"""What a handler returns instead of a response: a delayed operation, a deferred or a large response, or none at all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar, cast

from kproto.errors import KprotoError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from kproto.message import Response

logger = logging.getLogger("kproto")

R = TypeVar("R", bound="Response | LargeResponse | DelayedOperation | DeferredResponse | NoResponse | bytes")
T = TypeVar("T")
E = TypeVar("E")


class Completion:
    """Completes a delayed operation before its deadline. Handlers and timers may call `complete` more than once."""

    __slots__ = ("is_abandoned", "is_complete", "on_abandoned", "on_complete")

    def __init__(self, on_abandoned: Callable[[], object] | None = None) -> None:
        """``on_abandoned``: called if the connection ends first; the client gets no response then."""
        self.is_complete: bool = False
        self.is_abandoned: bool = False
        """Whether the connection ended first."""
        self.on_abandoned: Callable[[], object] | None = on_abandoned
        self.on_complete: Callable[[], object] | None = None
        """Set by the connection that has the delayed operation."""

    def complete(self) -> None:
        """Complete the operation. The event loop sends the response after the caller's current work."""
        if not self.is_complete:
            self.is_complete = True
            if self.on_complete is not None:
                self.on_complete()


class Turn(Completion):
    """Completes an operation when its turn has come: the event loop serves all connections between two turns."""

    __slots__ = ("rank",)

    def __init__(self, rank: int) -> None:
        """``rank``: see `Dispatcher.queue`."""
        super().__init__()
        self.rank: int = rank


class DelayedOperation(NamedTuple):
    """A request that waits, like Kafka's ``DelayedOperation``: for a deadline in broker time or for its completion.

    The connection handles no later request before the response is made (BA-8). If the broker's clock stands still, the
    operation ends after the same real time: virtual time never blocks a client (D7).
    """

    deadline_ms: int | None
    """None: only the completion ends the operation."""
    respond: Callable[[], Result]
    """May return one more operation that the request waits for."""
    completion: Completion | None = None


TURN_DEADLINE_MS = 60_000
"""An operation that waits for its turn is done at the latest then."""


TRUSTED = 0
UNKNOWN = 1
COSTLY = 16
"""Ranks of what waits for a turn: that many cheap requests make a connection trusted. See `Dispatcher.queue`."""


def at_turn(respond: Callable[[], Result], now_ms: int, rank: int = COSTLY) -> DelayedOperation:
    """Return the operation of a request whose work takes milliseconds: it waits for its turn."""
    return DelayedOperation(now_ms + TURN_DEADLINE_MS, respond, Turn(rank))


def in_slices(steps: Generator[None, None, R], now_ms: int) -> R | DelayedOperation:
    """Run a handler up to its next ``yield``; return its response, or an operation that continues at the next turn."""
    try:
        next(steps)
    except StopIteration as end:
        response: R = end.value
        return response
    return at_turn(lambda: in_slices(steps, now_ms), now_ms)


def at_once(steps: Generator[object, None, T]) -> T:
    """Do all steps of a computation; return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class LargeResponse(NamedTuple):
    """A response that is made and encoded in slices, each at a turn; `lazily` makes its arrays."""

    response: Response
    error_codes: Sequence[int] = ()
    """Those that the elements have; complete when all elements are made."""


class _LazyArray(Generic[T, E]):
    """Makes its elements when they are iterated, so that they are never all in memory."""

    __slots__ = ("_items", "_make")

    def __init__(self, make: Callable[[T], E], items: Sequence[T]) -> None:
        self._make = make
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> E:
        return self._make(self._items[index])

    def __iter__(self) -> Iterator[E]:
        return map(self._make, self._items)


def lazily(make: Callable[[T], E], items: Sequence[T]) -> tuple[E, ...]:
    """Return an array for a `LargeResponse`: it has a length, and makes an element of each item when it is encoded.

    Nothing may change the items meanwhile. The type is what declarations have; the value is no tuple.
    """
    return cast("tuple[E, ...]", _LazyArray(make, items))


def array_of(make: Callable[[T], E], items: Sequence[T], *, is_large: bool) -> tuple[E, ...]:
    """Return an array with an element for each item; a large one as `lazily` does."""
    return lazily(make, items) if is_large else tuple(map(make, items))


def noting_errors(make: Callable[[T], Any], error_codes: list[int]) -> Callable[[T], Any]:
    """Return the function, which now adds the error code of each element to a list, for `LargeResponse.error_codes`."""

    def noted(item: T) -> Any:
        element = make(item)
        if element.error_code:
            error_codes.append(element.error_code)
        return element

    return noted


def changed_array(
    change: Callable[[Any], Any], elements: Sequence[Any], *, before: Iterable[Any] = (), behind: Iterable[Any] = ()
) -> tuple[Any, ...]:
    """Return elements changed, between others. Those of `lazily` are changed when they are made."""
    if not isinstance(elements, _LazyArray):
        return (*before, *map(change, elements), *behind)
    array: _LazyArray[Any, Any] = elements

    def make(item: tuple[bool, Any]) -> Any:
        is_made, value = item
        return value if is_made else change(array._make(value))

    items = [(True, one) for one in before]
    items += [(False, one) for one in array._items]
    items += [(True, one) for one in behind]
    return lazily(make, items)


SMALL_BYTES = 1 << 20
"""Texts and bytes, chosen by clients, of a response that is made at once; each of them may have 32 KiB."""


def sum_exceeds(limit: int, counts: Iterable[int]) -> bool:
    """Return whether the sum of counts is above a limit. No more counts are read than that takes."""
    return any((limit := limit - count) < 0 for count in counts)


class DeferredResponse:
    """A response that waits for the log: made after everything appended before it is synced, in log order (OS-25)."""

    __slots__ = ("_respond", "deliver")

    def __init__(self, respond: Callable[[], Any]) -> None:
        """``respond``: returns the response, none, or what the request waits for next."""
        self._respond = respond
        self.deliver: Callable[[Any], object] | None = None
        """Set by the connection that sends the response; None: no connection waits for it."""

    def complete(self) -> None:
        """Make the response and deliver it, or the error. The log calls this once, after its sync."""
        result: Response | DeferredResponse | DelayedOperation | NoResponse | Failure
        try:
            result = self._respond()
        except Exception as error:  # noqa: BLE001 - the connection raises it again; the log has others to complete
            result = Failure(error)
        if self.deliver is not None:
            self.deliver(result)
        elif isinstance(result, Failure):
            logger.error("defect behind a sync of the log", exc_info=result.error)


class Failure(NamedTuple):
    """Delivered instead of a response that cannot be made."""

    error: Exception

    def respond(self) -> NoReturn:
        """Raise the error."""
        raise self.error


class Piece(NamedTuple):
    """Bytes that a connection sends as they are, and what it does then: what a fault rule makes of a response."""

    data: bytes
    then: DelayedOperation | None = None
    """What the connection waits for next."""
    close_reason: str | None = None
    """Why the connection is closed behind the bytes; None: it is not, unless ``then`` closes it."""
    resets: bool = False
    """Whether that is a reset (TCP RST)."""


class Shaped(NamedTuple):
    """A response that is not sent whole and at once."""

    response: Response
    shape: Callable[[bytes], Piece]
    """Returns what is sent, given the frame of the response with its size."""


class NoResponse:
    """The result of a request that the protocol gives no response: Produce with acks=0 (BA-9)."""


NO_RESPONSE = NoResponse()


class CloseConnection(KprotoError):
    """The broker closes the connection without a response, as a real broker does (BA-6, BA-13)."""


def then(result: Result, change: Callable[[Result], Result]) -> Result:
    """Return a result that is changed when it is there: a response, or none at all."""
    if isinstance(result, DelayedOperation):
        respond = result.respond
        return result._replace(respond=lambda: then(respond(), change))
    if isinstance(result, DeferredResponse):
        return then(_waits_for_log(result), change)
    return change(result)


def _waits_for_log(deferred: DeferredResponse) -> DelayedOperation:
    """Return an operation that ends when a deferred response is there."""
    completion = Completion()
    found: list[Result | Failure] = []

    def deliver(result: Response | DeferredResponse | NoResponse | Failure) -> None:
        if isinstance(result, DeferredResponse):
            result.deliver = deliver
        else:
            found.append(result)
            completion.complete()

    def respond() -> Result:
        result = found[0] if found else NO_RESPONSE
        return result.respond() if isinstance(result, Failure) else result

    deferred.deliver = deliver
    return DelayedOperation(None, respond, completion)


def soon(result: Result, now_ms: int) -> DelayedOperation:
    """Return an operation that is complete: a handler returns it for results that only an operation may have."""
    completion = Completion()
    completion.complete()
    return DelayedOperation(now_ms, lambda: result, completion)


if TYPE_CHECKING:
    Result = Response | LargeResponse | DelayedOperation | DeferredResponse | NoResponse | Piece | Shaped | bytes
    """What may follow an operation; ``bytes``, or a bytearray: the frame of the response."""
