"""From a request to its response: find the operation, check its arguments, perform it in a worker thread."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import trio
from trio.lowlevel import RunVar

from kproto.errors import KprotoError
from kproto_server.broker.own_requests import RequestRefused
from kproto_server.control.message import HttpResponse, json_response, problem_response
from kproto_server.control.operations import at
from kproto_server.control.problem import Problem, bad_request, not_found, refused
from kproto_server.control.queries import RenderedReport
from kproto_server.control.stream import EventStream
from kproto_server.network.listening import CannotListen

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.control.controls import Controls, Run
    from kproto_server.control.message import HttpRequest
    from kproto_server.control.operation import Operation
    from kproto_server.control.service import Service

T = TypeVar("T")
U = TypeVar("U")

logger = logging.getLogger("kproto")

THREADS_MAX = 64
THREAD_NAME = "kproto-control"
_limiter: RunVar[trio.CapacityLimiter] = RunVar("threads of the control API")


class _Abandoned(KprotoError):
    """The client of a wait has hung up, or the broker stops."""


class Call(NamedTuple):
    """A call of an operation, checked."""

    service: Service
    operation: Operation
    arguments: dict[str, object]

    @property
    def waits(self) -> bool:
        """Whether it may take long."""
        return self.operation.waits

    async def perform(self, access: Run) -> HttpResponse | EventStream:
        """Perform the operation in a worker thread, and return its response, also if it fails.

        Cancellation:
            A wait ends at its next look at the broker; another operation takes effect.
        """
        return await in_worker(self.service, access, self._response)

    def _response(self, controls: Controls) -> HttpResponse | EventStream:
        """Return the response; runs in a worker thread."""
        try:
            return self._converted(self.operation.call(controls, self.arguments))
        except Problem as problem:
            return problem_response(problem)
        except _Abandoned:
            return HttpResponse(HTTPStatus.SERVICE_UNAVAILABLE)
        except TimeoutError as error:
            return problem_response(Problem(HTTPStatus.GATEWAY_TIMEOUT, str(error)))
        except CannotListen as error:
            return problem_response(Problem(HTTPStatus.CONFLICT, str(error)))
        except RequestRefused as error:
            return problem_response(refused(error))
        except (KprotoError, ValueError) as error:
            return problem_response(bad_request(str(error)))
        except RuntimeError as error:
            return problem_response(Problem(HTTPStatus.CONFLICT, str(error)))
        except Exception:  # a defect: its traceback goes to the log only
            logger.exception("the control API has failed: %s %s", self.operation.method, self.operation.path)
            detail = "the control API has failed: the broker's log has the reason"
            return problem_response(Problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail))

    def _converted(self, value: object) -> HttpResponse | EventStream:
        result = self.operation.result
        if isinstance(value, EventStream):
            return value
        if isinstance(value, RenderedReport):
            return HttpResponse(result.status, value.content.encode(), value.content_type, value.headers)
        if isinstance(value, str):
            return HttpResponse(result.status, value.encode(), result.content_type)
        if result.status == HTTPStatus.NO_CONTENT:
            return HttpResponse(result.status)
        return json_response(value, result.status)


async def in_worker(service: Service, access: Run, work: Callable[[Any], T]) -> T:
    """Run a function in a worker thread, which reaches a broker between two requests; return its result.

    ``access``: how a worker thread reaches it. ``work``: gets the controls of the service.

    Cancellation:
        The function ends at its next look at the broker.
    """
    is_abandoned = False

    def run(action: Callable[[Any], U]) -> U:
        if is_abandoned:
            raise _Abandoned
        return access(action)

    try:
        return await trio.to_thread.run_sync(
            work, service.controls(run), thread_name=THREAD_NAME, abandon_on_cancel=True, limiter=_threads()
        )
    finally:
        is_abandoned = True


def _threads() -> trio.CapacityLimiter:
    """Return the limiter of this broker's worker threads."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(THREADS_MAX)
        _limiter.set(limiter)
        return limiter


def call_of(service: Service, request: HttpRequest) -> Call:
    """Return the call that a request asks for.

    Raises:
        Problem: there is no such operation, or its arguments are wrong.
    """
    operations = at(service.operations, request.path)
    if not operations:
        raise not_found(f"there is nothing at {request.target.partition('?')[0][:200]}: GET /openapi.json lists all")
    method = "GET" if request.method == "HEAD" else request.method
    if method not in operations:
        methods = ", ".join(operations)
        raise Problem(HTTPStatus.METHOD_NOT_ALLOWED, f"use {methods}, not {request.method[:20]}", (("Allow", methods),))
    operation, in_path = operations[method]
    if operation.has_body:
        if request.query:
            raise bad_request("the arguments are in the body, a JSON object, not in the query")
        return Call(service, operation, operation.checked(in_path, request.json_object))
    if request.body:
        raise bad_request("the arguments are in the query, not in the body")
    return Call(service, operation, operation.checked(in_path | request.query, {}))
