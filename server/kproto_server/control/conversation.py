"""One connection of the control API: HTTP/1.1 (h11) over a trio stream, within limits of size and time."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

import h11
import trio

from kproto.errors import KprotoError
from kproto_server.control.api import call_of, in_worker
from kproto_server.control.message import HttpRequest, HttpResponse, problem_response
from kproto_server.control.page_files import page_file
from kproto_server.control.problem import Problem
from kproto_server.control.stream import EventStream

if TYPE_CHECKING:
    from kproto_server.control.admission import Admission
    from kproto_server.control.api import Call
    from kproto_server.control.controls import Run
    from kproto_server.control.service import Service

logger = logging.getLogger("kproto")

READ_BYTES = 16_384
HEAD_MAX_BYTES = 16_384
BODY_MAX_BYTES = 1 << 20
IDLE_S = 60.0
"""How long a connection may wait for its next request."""
RECEIVE_S = 10.0
"""How long a request may take to arrive after its first byte."""
SEND_S = 30.0
"""How long a client may take to receive a response."""

LOOK_S = 0.4
"""How often a stream of events looks at the broker."""
LOOK_SHARE = 4
"""A stream looks for at most a part of the time, one of so many and one."""


class _Ended(KprotoError):
    """The client has closed the connection, or sends nothing."""


async def converse(stream: trio.SocketStream, service: Service, admission: Admission, *, is_busy: bool) -> None:
    """Respond to the requests of one connection until it ends.

    Cancellation:
        The request in progress gets no response; the caller closes the stream.
    """
    conversation = _Conversation(stream, service)
    try:
        while await conversation.exchange(admission, is_busy):
            pass
    except* (_Ended, trio.BrokenResourceError, trio.ClosedResourceError, h11.LocalProtocolError):
        pass  # an operation that waits has a nursery, whose errors are a group
    except* Exception:  # a defect of the control API ends neither the broker nor other connections
        logger.exception("the control API has failed")


class _Conversation:
    def __init__(self, stream: trio.SocketStream, service: Service) -> None:
        self._stream = stream
        self._service = service
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_MAX_BYTES)
        self._is_head: bool = False

    async def exchange(self, admission: Admission, is_busy: bool) -> bool:
        """Respond to one request; return whether another one may come.

        Cancellation:
            The request gets no response.
        """
        self._is_head = False
        try:
            if is_busy:
                raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections are open: close one, or wait")
            request = await self._request()
            service = self._service
            number, inner = service.split(request)
            file = page_file(inner) if service.has_page else None
            if file is not None:
                admission.check_host(request)
                response = file
            else:
                admission.check(request)
                response = await self._respond(service.access(number), call_of(service, inner))
        except Problem as problem:
            response = problem_response(problem)
        except h11.RemoteProtocolError as error:
            status = HTTPStatus(error.error_status_hint)
            response = problem_response(Problem(status, f"this is no request: {error}"))
        await self._send(response)
        if self._http.our_state is h11.MUST_CLOSE or self._http.their_state is not h11.DONE:
            await self._close()
            return False
        self._http.start_next_cycle()
        return True

    async def _request(self) -> HttpRequest:
        """Receive a request.

        Raises:
            Problem: it is too large, or arrives too slowly.

        Cancellation:
            Nothing is left behind; the caller closes the connection.
        """
        if not self._http.trailing_data[0]:
            with trio.move_on_after(IDLE_S) as idle:
                await self._receive()
            if idle.cancelled_caught:
                raise _Ended
        with trio.move_on_after(RECEIVE_S):
            return await self._whole_request()
        raise Problem(HTTPStatus.REQUEST_TIMEOUT, f"the request has not arrived within {RECEIVE_S:.0f} s")

    async def _whole_request(self) -> HttpRequest:
        """Receive a request with its body, or raise as `_request`.

        Cancellation:
            A part of the request is lost; the caller closes the connection.
        """
        head = await self._event()
        if not isinstance(head, h11.Request):
            raise _Ended
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        request = HttpRequest(head.method.decode("latin-1"), head.target.decode("latin-1"), headers)
        self._is_head = request.method == "HEAD"
        too_large = Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {BODY_MAX_BYTES} bytes")
        if int(headers.get("content-length", "0")) > BODY_MAX_BYTES:
            raise too_large
        if self._http.they_are_waiting_for_100_continue:
            proceed = h11.InformationalResponse(status_code=100, headers=[])
            await self._stream.send_all(self._http.send(proceed) or b"")
        body = bytearray()
        while isinstance(event := await self._event(), h11.Data):
            body += event.data
            if len(body) > BODY_MAX_BYTES:
                raise too_large
        return request._replace(body=bytes(body))

    async def _event(self) -> h11.Event | type[h11.PAUSED]:
        """Return the next part of a request; raise `_Ended` at the end of the connection.

        Cancellation:
            Bytes that have arrived stay in the state of the connection.
        """
        while (event := self._http.next_event()) is h11.NEED_DATA:
            await self._receive()
        if isinstance(event, h11.ConnectionClosed):
            raise _Ended
        return event  # type: ignore[return-value]  # NEED_DATA is excluded

    async def _receive(self) -> None:
        """Receive bytes into the state of the connection; raise `_Ended` at its end.

        Cancellation:
            Nothing has been received.
        """
        data = await self._stream.receive_some(READ_BYTES)
        self._http.receive_data(data)
        if not data:
            self._http.next_event()  # raises if a request has begun
            raise _Ended

    async def _respond(self, access: Run, call: Call) -> HttpResponse:
        """Return the response, or send a stream; give up a wait and a stream if the client hangs up meanwhile.

        Cancellation:
            An operation that waits ends soon; another one takes effect.
        """
        if not call.waits:
            response = await call.perform(access)
            assert isinstance(response, HttpResponse), "streams wait"
            return response
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_at_hangup, nursery.cancel_scope)
            result = await call.perform(access)
            if isinstance(result, EventStream):
                await self._send_stream(result, access)
            nursery.cancel_scope.cancel()
            if isinstance(result, HttpResponse):
                return result
        raise _Ended

    async def _send_stream(self, stream: EventStream, access: Run) -> None:
        """Send a stream of events; the connection ends with it.

        Cancellation:
            The client receives a part of the stream.
        """
        head = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"), ("Connection", "close")]
        await self._send_all(self._http.send(h11.Response(status_code=200, headers=head)) or b"")
        if self._is_head:
            return
        end = trio.current_time() + stream.timeout_s
        while True:
            began = trio.current_time()
            events = await in_worker(self._service, access, stream.look)
            taken_s = trio.current_time() - began
            await self._send_all(self._http.send(h11.Data(data=events)) or b"")
            pause_s = max(LOOK_S, LOOK_SHARE * taken_s)
            if trio.current_time() + pause_s > end:
                break
            await trio.sleep(pause_s)
        await self._send_all(self._http.send(h11.EndOfMessage()) or b"")

    async def _cancel_at_hangup(self, scope: trio.CancelScope) -> None:
        """Cancel a scope when the client closes the connection, unless it sends another request before.

        Cancellation:
            Nothing is left behind: bytes are only looked at.
        """
        sock = self._stream.socket
        try:
            if await sock.recv(1, socket.MSG_PEEK):
                return  # the next request
        except OSError:
            pass
        scope.cancel()

    async def _send(self, response: HttpResponse) -> None:
        """Send a response within `SEND_S`.

        Cancellation:
            The client receives a part of it; the caller closes the connection.
        """
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            *response.headers,
        ]
        if self._http.their_state is not h11.DONE:
            headers.append(("Connection", "close"))
        reason = HTTPStatus(response.status).phrase.encode()
        head = h11.Response(status_code=response.status, headers=headers, reason=reason)
        data = self._http.send(head) or b""
        if response.body and not self._is_head:
            data += self._http.send(h11.Data(data=response.body)) or b""
        data += self._http.send(h11.EndOfMessage()) or b""
        await self._send_all(data)

    async def _send_all(self, data: bytes) -> None:
        """Send bytes within `SEND_S`.

        Cancellation:
            The client receives a part of them.
        """
        with trio.move_on_after(SEND_S):
            await self._stream.send_all(data)
            return
        raise _Ended

    async def _close(self) -> None:
        """End the connection so that the client receives the response: what it still sends is read for a moment.

        Cancellation:
            The client may not receive the response.
        """
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError), trio.move_on_after(1.0):
            await self._stream.send_eof()
            while await self._stream.receive_some(READ_BYTES):
                pass
