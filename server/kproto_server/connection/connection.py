"""The broker's end of a connection, without its socket: bytes of requests in, bytes of responses out."""

# Theory of operation
# ===================
#
# `Connection.receive` takes the bytes of one read, handles each complete request that can be handled now, and returns
# all responses that can be sent now, as one piece of bytes. Everything happens in this call: there is no task and no
# queue per request. `kproto_server.network.transport` owns the socket, calls `receive`, and sends the result.
#
# Four things delay a request or its response; `connection_state` has the states and transitions:
#
# - An earlier request is a delayed operation. It ends by its deadline or by its completion; the transport then calls
#   `resume`, which returns the response of this request and of those behind it.
# - An earlier response is deferred until the log is synced. The connection is put into `Dispatcher.runnable` then, and
#   the transport calls `proceed` at the end of the loop's iteration.
# - A costly request waits for its turn: a large one at the front of the backlog, or the next slice of a handler's work
#   (`deferred.Turn`). It is delayed, and the event loop completes one turn after the other, with an iteration between.
#   The first large request of an iteration does not wait (`Dispatcher.take_free_turn`). A large response is encoded in
#   slices, one at each turn (`deferred.LargeResponse`). When the requests of an iteration have taken `LATE_MS`, all
#   further ones wait for a turn: in the socket (`queue_read`), or in the backlog if they were read before. Those of
#   clients whose requests were cheap have theirs first (`Dispatcher.queue`).
# - The responses of one call are larger than `RESPONSES_SIZE_MAX_BYTES`. The transport calls `proceed` after the client
#   has taken them.
#
# A request takes one of two ways. `CommitCache.look_up` responds to an OffsetCommit that differs from an earlier one in
# offsets and correlation id only, without decoding it. All other requests take the reference path, `_handle`: header,
# endpoint, decoder, handler, encoder. The cache learns from what the reference path did. Apart from the calls of the
# cache, no API is mentioned here: `Endpoint` has what is special to an API.
#
# An exception of a handler, a codec or the cache is a defect of the broker. It is logged and closes this connection; it
# never reaches the event loop, where it would end all connections (BA-13).

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from kproto.errors import DecodeError, FrameTooLarge, StringTooLong, TooManyElements
from kproto.framing import FrameReader
from kproto.headers import explain_header_version, read_request_header
from kproto.message import Response
from kproto_server.cluster.topics import TopicsNotStored
from kproto_server.commit_cache.cache import CommitCache
from kproto_server.connection.connection_state import CLOSED, DEFERRED, DELAYED, READY, TRANSITIONS, Event, State
from kproto_server.connection.deferred_queue import Deferred, DeferredQueue
from kproto_server.connection.dispatcher import LATE_MS
from kproto_server.connection.response_encoder import Exchange, ResponseEncoder
from kproto_server.deferred import (
    COSTLY,
    NO_RESPONSE,
    UNKNOWN,
    CloseConnection,
    DeferredResponse,
    DelayedOperation,
    Failure,
    LargeResponse,
    NoResponse,
    Piece,
    Shaped,
    Turn,
    at_turn,
    in_slices,
)
from kproto_server.observation.observe import NO_API
from kproto_server.requests.context import ConnectionInfo, RequestContext
from kproto_server.requests.endpoint import perform

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.clock import Timer
    from kproto_server.cluster.cluster import Node
    from kproto_server.connection.deferred_queue import PendingResponse
    from kproto_server.connection.dispatcher import Dispatcher
    from kproto_server.observation.observe import RequestCounts

logger = logging.getLogger("kproto")

REFUSED = (DecodeError, CloseConnection, StringTooLong, TooManyElements, TopicsNotStored)
"""What clients or the disk can cause; any other exception is a defect."""
DEFECT = "API key %d version %d from %r"
DEFECT_OF_CACHE = "commit cache, request from %r"
CLOSED_BY_DEFECT = "the broker failed on this request; its log says how"

RESPONSES_SIZE_MAX_BYTES = 1 << 20
"""Responses that one call makes before it leaves the rest of the backlog for the next call. One read of 64 KiB has
thousands of small requests, each of which may have a response of megabytes."""


_new: Any = tuple.__new__
"""Builds a named tuple from its values in order, in half the time of its constructor."""


class Connection:
    """One client's connection. The transport that calls `receive` also calls `abandon` when the socket is closed."""

    __slots__ = (
        "_client_id",
        "_delayed_exchange",
        "_encode",
        "_encoder",
        "_framing_error",
        "_look_up",
        "_rank",
        "_reader",
        "_request_counts",
        "backlog",
        "close_reason",
        "delayed",
        "dispatcher",
        "has_turn",
        "info",
        "node",
        "on_runnable",
        "pending",
        "resets",
        "state",
    )

    def __init__(self, dispatcher: Dispatcher, node: Node, info: ConnectionInfo) -> None:
        self.dispatcher: Dispatcher = dispatcher
        self.node: Node = node
        self.info: ConnectionInfo = info
        self.state: State = READY
        self.close_reason: str | None = None
        """Why the connection must be closed; None: it need not."""
        self.resets: bool = False
        """Whether the connection is closed by a reset (TCP RST)."""
        self.on_runnable: Callable[[], object] | None = None
        """Set by the transport; called by the event loop when the connection was in `Dispatcher.runnable`."""
        self.backlog: deque[bytes] = deque()
        """Frames that are not handled yet."""
        self.pending: DeferredQueue = DeferredQueue()
        """Deferred responses, and responses that are ready but behind one that is not."""
        self.delayed: DelayedOperation | None = None
        """The delayed operation that the connection waits for."""
        self._delayed_exchange: Exchange | None = None
        """What is delayed; None: the request at the front of the backlog, which is handled when its turn has come."""
        self.has_turn: bool = False
        """Whether the next request does not wait for a turn."""
        self._reader = FrameReader(dispatcher.frame_size_max_bytes)
        self._framing_error: str | None = None
        """Why no frame can follow those in the backlog."""
        self._rank = UNKNOWN
        """What `deferred.Turn` has: how many more cheap requests make the connection trusted."""
        self._client_id = ""
        """The client id of the latest request, for reports of a frame that has none."""
        self._request_counts: RequestCounts = {}
        """Those of `Observations`, from the first request on."""
        self._encoder = ResponseEncoder(dispatcher.observations, info)
        self._encode = self._encoder.encode
        self._use_commit_cache()

    def _use_commit_cache(self) -> None:
        """Give the requests of the connection's client, as `info` has it now, to the commit cache."""
        commit_cache = CommitCache(self.dispatcher.cached_commits, self.dispatcher.observations, self.node, self.info)
        self._look_up = commit_cache.look_up
        self._encoder.learn = commit_cache.learn

    def receive(self, data: bytes, now_ms: int) -> bytes:
        """Take the bytes of one read; return the responses that can be sent now, in request order."""
        reader = self._reader
        if not reader.buffered and len(data) - 4 == int.from_bytes(data[:4], "big") <= reader.limit:
            # The read is exactly one frame, as with every client that waits for each response. Without this branch the
            # reader and the backlog would take 5 % of a commit.
            if self.state is READY:
                frame = data[4:]
                response: bytes | PendingResponse | None
                try:
                    response = self._look_up(frame, now_ms)
                except Exception:
                    logger.exception(DEFECT_OF_CACHE, self._client_id)
                    self._fail(CLOSED_BY_DEFECT, NO_API, NO_API)
                    return b""
                if response is None:
                    response = self._handle(frame, now_ms)
                if type(response) is bytes:
                    return response
                return self._handle_backlog(now_ms, self._defer(response, len(data)))
            self.backlog.append(data[4:])
        else:
            reader.feed(data)
            try:
                self.backlog.extend(reader.frames())
            except FrameTooLarge as error:
                # `extend` has taken the frames before it; these are handled first.
                self._framing_error = str(error)
        return self._handle_backlog(now_ms, [])

    def proceed(self, now_ms: int) -> bytes:
        """Return the deferred responses whose log is synced, and handle the backlog as far as possible."""
        return self._handle_backlog(now_ms, self._take_settled())

    def resume(self, now_ms: int) -> bytes:
        """End the delayed operation; return its response, and those of the requests behind it."""
        operation, exchange = self._take_delayed()
        if exchange is None:
            self.has_turn = True
            return self._handle_backlog(now_ms, [])
        try:
            # A slice of a request may change topics and configs, as the whole of it may.
            result = perform(
                lambda request, context: operation.respond(), exchange.endpoint.fail, exchange.request, exchange.context
            )
            if isinstance(result, Response):
                responses = [self._encode(*exchange, result)]
            elif isinstance(result, (bytes, bytearray)):
                responses = [result]  # made already
            elif isinstance(result, NoResponse):
                responses = []
            elif isinstance(result, DeferredResponse):
                # Its request left the backlog long ago, so it does not count in the size of pending requests.
                responses = self._defer(self._place(result, exchange), 0)
            elif isinstance(result, (Piece, Shaped)):
                responses = [self._send_piece(self._shaped(result, exchange), exchange)]
            else:
                self._delay(self._at_turns(result, exchange) if isinstance(result, LargeResponse) else result, exchange)
                return b""
        except REFUSED as error:
            self._fail(str(error), exchange.context.api_key, exchange.context.api_version)
            return b""
        except Exception:
            logger.exception(DEFECT, exchange.context.api_key, exchange.context.api_version, self._client_id)
            self._fail(CLOSED_BY_DEFECT, exchange.context.api_key, exchange.context.api_version)
            return b""
        if responses and not self.backlog and self.state is READY and self._framing_error is None:
            return responses[0]  # as below, in a fifth of the time
        return self._handle_backlog(now_ms, responses)

    def give_up(self, reason: str) -> None:
        """Note why the server closes the connection."""
        self._fail(reason, NO_API, NO_API)

    def abandon(self) -> None:
        """Note that the socket is closed: a delayed operation is abandoned, deferred responses are dropped."""
        self._enter(Event.ABANDON)
        # The log may still complete deferred responses and make the connection runnable: nothing happens then.
        self.on_runnable = None
        self.backlog.clear()
        self.pending.clear()
        self._abandon_delayed()
        share_groups = self.dispatcher.state.used_share_groups
        if share_groups is not None:
            share_groups.disconnected(self.node.node_id, self.info)
        client_metrics = self.dispatcher.state.used_client_metrics
        if client_metrics is not None:
            client_metrics.disconnected(self.info)

    def skip_delayed(self, now_ms: int) -> None:
        """Abandon the delayed operation, and handle the requests behind it; drop their responses.

        The transport calls `abandon` next.
        """
        self._abandon_delayed()
        self._enter(Event.COMPLETE)
        self._handle_backlog(now_ms, [])

    def _abandon_delayed(self) -> None:
        delayed, self.delayed, self._delayed_exchange = self.delayed, None, None
        if delayed is not None:
            completion = delayed.completion
            if completion is not None:
                completion.is_abandoned = True
                completion.on_complete = None
                if completion.on_abandoned is not None:
                    completion.on_abandoned()

    @property
    def client(self) -> str:
        """The client's address and id, for the log."""
        return f"{self.info.client_host} {self._client_id!r}"

    @property
    def deadline_ms(self) -> int | None:
        """The broker time at which the delayed operation ends; None: it has no deadline, or there is none."""
        return None if self.delayed is None else self.delayed.deadline_ms

    @property
    def is_delay_complete(self) -> bool:
        """Whether there is a delayed operation that was completed, so that `resume` may be called."""
        delayed = self.delayed if self.state is DELAYED else None
        completion = None if delayed is None else delayed.completion
        return completion is not None and completion.is_complete

    @property
    def has_turn_to_come(self) -> bool:
        """Whether the delayed operation waits for its turn."""
        return self.delayed is not None and isinstance(self.delayed.completion, Turn)

    @property
    def incomplete_bytes(self) -> int:
        """How many bytes of a frame have come whose end has not."""
        return self._reader.buffered

    def make_runnable(self) -> None:
        """Have the event loop call `on_runnable` after its current work."""
        self.dispatcher.runnable[self] = None

    def queue_read(self, read: Callable[[], object], *, is_costly: bool) -> None:
        """Have the transport read the socket when the connection has its turn; ``is_costly``: whatever it has sent."""
        turn = Turn(COSTLY if is_costly else self._rank)
        turn.on_complete = read
        self.dispatcher.queue(turn)

    # The queue.

    def _enter(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state][event]

    def _handle_backlog(self, now_ms: int, responses: list[bytes]) -> bytes:
        """Handle frames of the backlog until one has to wait; return these responses and those that are added."""
        backlog, look_up = self.backlog, self._look_up
        response: bytes | PendingResponse | None
        size = 0
        try:
            while backlog:
                # The state may change with each request: a handler may delay or defer, a request may close.
                state = self.state
                if state is DEFERRED:
                    if not self._may_join_pending(backlog[0]):
                        break
                elif state is not READY:
                    break  # delayed, or to be closed: the frames behind it wait, or are never handled
                elif size >= RESPONSES_SIZE_MAX_BYTES:
                    self._enter(Event.OVERFLOW)
                    break
                frame = backlog.popleft()
                response = look_up(frame, now_ms)
                if response is None:
                    response = self._handle(frame, now_ms)
                # `state` is that before the request. A response that is ready goes out with this call if no response
                # before it is deferred; otherwise it has to queue behind them, to keep the order.
                if state is READY and type(response) is bytes:
                    size += len(response)
                    responses.append(response)
                elif response:
                    self._defer(response, len(frame))
        except Exception:  # only `look_up` raises: `_handle` turns each exception into the end of the connection
            logger.exception(DEFECT_OF_CACHE, self._client_id)
            self._fail(CLOSED_BY_DEFECT, NO_API, NO_API)
        # The stream has lost its frames. Every request before that point has been handled, unless one still waits.
        if self._framing_error is not None and not backlog and (self.state is READY or self.state is DEFERRED):
            self._fail(self._framing_error, NO_API, NO_API)
        if self.state is DEFERRED and (backlog or self.pending.is_full()):
            self._enter(Event.BLOCK)
        return responses[0] if len(responses) == 1 else b"".join(responses)

    def _defer(self, response: bytes | PendingResponse, request_size_bytes: int) -> list[bytes]:
        """Put a response behind the deferred ones, or as the first one. Return an empty list of responses."""
        pending = self.pending
        pending.append(response)
        pending.size_bytes += request_size_bytes
        if not isinstance(response, bytes):
            response.on_settled = self.make_runnable
            # A write that is refused before it is queued has settled already, before anything could be called.
            if response.response is not None:
                self.make_runnable()
        self._enter(Event.DEFER)
        return []

    def _take_settled(self) -> list[bytes]:
        """Return the deferred responses that wait for nothing any more."""
        pending = self.pending
        responses = pending.take_settled()
        self._enter(Event.PROCEED if pending or not responses else Event.RELEASE)
        return responses

    def _may_join_pending(self, frame: bytes) -> bool:
        """Whether a request may be handled although responses before it are deferred.

        Only requests that append and read nothing may, and only behind others of this kind.
        """
        pending = self.pending
        last = pending[-1]
        return (
            not pending.is_full()
            and self.dispatcher.shares_sync(frame)
            and (not isinstance(last, Deferred) or last.shares_sync)
        )

    # One request.

    def _handle(self, frame: bytes, now_ms: int) -> bytes | PendingResponse:
        """The reference path: decode a request, have its API's handler handle it, encode the response."""
        api_key = api_version = NO_API
        is_handled, dispatcher = True, self.dispatcher
        began_s = dispatcher.monotonic_s()
        try:
            api_key, api_version, correlation_id, client_id, body_position = read_request_header(frame)
            self._client_id = client_id = client_id or ""  # null counts as empty (BA-4)
            endpoint = dispatcher.endpoints[api_key, api_version]
            is_large = len(frame) >= endpoint.turn_size_bytes
            if (is_large or dispatcher.is_late or self._rank > UNKNOWN) and self._must_wait_for_turn(
                frame, now_ms, COSTLY if is_large else self._rank
            ):
                is_handled = False
                return b""
            state = dispatcher.state
            # Named one by one: unpacking a tuple of them takes 12 % longer.
            context = RequestContext(
                state.coordinator,
                state.cluster,
                state.settings,
                state,
                self.node,
                self.info,
                api_key,
                endpoint.api_version,
                client_id,
                now_ms,
            )
            try:
                self._request_counts[client_id, api_key, api_version] += 1
            except KeyError:
                counts = dispatcher.observations.request(self.info, client_id, api_key, api_version)
                self._request_counts = counts
            decoded = endpoint.decode(frame, body_position, endpoint.elements_max)
            request = decoded[0]  # bytes after the body are ignored (BA-7)
            if endpoint.on_decoded is not None:
                endpoint.on_decoded(decoded, context)
            try:  # `endpoint.perform`, inlined
                result = endpoint.handle(request, context)
                if state.cluster.unsaved:
                    state.cluster.save()
            except (StringTooLong, TopicsNotStored) as error:  # the string is in a record of the offsets log
                result = endpoint.fail(request, error)
            if isinstance(result, Response):
                return self._encode(frame, body_position, correlation_id, endpoint, context, request, result)
            exchange = _new(Exchange, (frame, body_position, correlation_id, endpoint, context, request))
            if isinstance(result, DelayedOperation):
                if self.state is not READY:
                    return self._place(result, exchange)
                self._delay(result, exchange)
            elif isinstance(result, DeferredResponse):
                return self._place(result, exchange)
            elif isinstance(result, LargeResponse):
                self._delay(self._at_turns(result, exchange), exchange)
        except REFUSED as error:
            explained = explain_header_version(frame) if isinstance(error, (DecodeError, TooManyElements)) else None
            self._fail(explained or str(error), api_key, api_version)
        except Exception:
            logger.exception(DEFECT, api_key, api_version, self._client_id)
            self._fail(CLOSED_BY_DEFECT, api_key, api_version)
        finally:
            ended_s = dispatcher.monotonic_s()
            if is_handled and (self._rank or ended_s * 1000.0 - dispatcher.state.clock.real_ms > LATE_MS):
                self._note_cost(began_s, ended_s)
        return b""

    def _delay(self, operation: DelayedOperation, exchange: Exchange | None) -> None:
        """Have the connection wait for an operation; ``exchange`` as in `_delayed_exchange`."""
        self._enter(Event.DELAY)
        self.delayed = operation
        self._delayed_exchange = exchange
        completion = operation.completion
        if completion is not None:
            completion.on_complete = self.make_runnable
            if isinstance(completion, Turn):
                self.dispatcher.queue(completion)
            elif completion.is_complete:
                self.make_runnable()

    def _take_delayed(self) -> tuple[DelayedOperation, Exchange | None]:
        operation, exchange = self.delayed, self._delayed_exchange
        assert operation is not None, "no operation is delayed"
        self.delayed = self._delayed_exchange = None
        self._enter(Event.COMPLETE)
        return operation, exchange

    def _must_wait_for_turn(self, frame: bytes, now_ms: int, rank: int) -> bool:
        """Put a request back to the front of the backlog until its turn, unless it has come.

        A request that shares the sync of those before it does not wait: the log is the bottleneck then.
        """
        if self.has_turn or self.state is not READY or self.dispatcher.take_free_turn():
            self.has_turn = False
            return False
        self.backlog.appendleft(frame)
        self._delay(at_turn(lambda: NO_RESPONSE, now_ms, rank), None)
        return True

    def _note_cost(self, began_s: float, ended_s: float) -> None:
        """Have the connection wait behind others if its latest request was costly, and trust it after cheap ones."""
        if self.dispatcher.was_costly(began_s, ended_s):
            self._rank = COSTLY
        elif self._rank:
            self._rank -= 1

    def _place(self, result: DeferredResponse | DelayedOperation, exchange: Exchange) -> Deferred:
        """Return what takes the place of a response that is not there yet in the queue."""
        is_deferred = isinstance(result, DeferredResponse)
        place = Deferred(shares_sync=is_deferred and self.dispatcher.shares_sync(exchange.frame))

        def deliver(result: Response | Shaped | DeferredResponse | DelayedOperation | NoResponse | Failure) -> None:
            if self.state is CLOSED and not isinstance(result, Failure):
                return  # nothing is counted for a connection that has returned its counts
            try:
                if isinstance(result, DeferredResponse):
                    result.deliver = deliver
                    return
                if isinstance(result, DelayedOperation):
                    self._wait_in_queue(result, deliver)
                    return
                if isinstance(result, Failure):
                    raise result.error
                if isinstance(result, Shaped):
                    result = result.response
                place.response = b"" if isinstance(result, NoResponse) else self._encode(*exchange, result)
            except REFUSED as error:
                place.response = b""
                self._fail(str(error), exchange.context.api_key, exchange.context.api_version)
            except Exception:
                place.response = b""
                logger.exception(DEFECT, exchange.context.api_key, exchange.context.api_version, self._client_id)
                self._fail(CLOSED_BY_DEFECT, exchange.context.api_key, exchange.context.api_version)
            if place.on_settled is not None:
                place.on_settled()

        deliver(result)
        return place

    def _wait_in_queue(self, operation: DelayedOperation, deliver: Callable[[Any], object]) -> None:
        """Deliver the result of an operation that is delayed behind deferred responses, when it is there.

        Only a commit is: of a client that has got a quota meanwhile, or to a partition with too few in-sync replicas.
        """
        deferred = DeferredResponse(operation.respond)
        timer: Timer | None = None
        has_ended = False

        def end() -> None:
            nonlocal has_ended
            if not has_ended:
                has_ended = True
                if timer is not None:
                    timer.cancel()
                deferred.complete()

        deferred.deliver = deliver

        completion = operation.completion
        if completion is not None:
            completion.on_complete = end
            if completion.is_complete:
                end()
                return
        if operation.deadline_ms is not None:
            timer = self.dispatcher.state.clock.call_at(operation.deadline_ms, end, for_client=True)

    def _at_turns(self, large: LargeResponse, exchange: Exchange) -> DelayedOperation:
        """Return an operation that makes a large response, slice by slice."""
        now_ms = exchange.context.now_ms
        steps = self._encoder.encode_slices(large, exchange)
        return at_turn(lambda: in_slices(steps, now_ms), now_ms)

    def _shaped(self, result: Piece | Shaped, exchange: Exchange) -> Piece:
        """Return the first bytes to send of a response that is not sent whole and at once."""
        return result if isinstance(result, Piece) else result.shape(self._encode(*exchange, result.response))

    def _send_piece(self, piece: Piece, exchange: Exchange | None) -> bytes:
        """Return the bytes of a piece; delay or close the connection behind them."""
        if piece.then is not None:
            self._delay(piece.then, exchange)
        elif piece.close_reason is not None:
            self._enter(Event.FAIL)
            self.close_reason, self.resets = piece.close_reason, piece.resets
            logger.info("%s: closed: %s", self.client, piece.close_reason)
        return piece.data

    # The end.

    def _fail(self, reason: str, api_key: int, api_version: int) -> None:
        if self.state is CLOSED:
            return  # a deferred response has failed after the socket was closed
        self._enter(Event.FAIL)
        self.close_reason = reason
        self.dispatcher.observations.closed(self.info, self._client_id, api_key, api_version, reason)
        logger.info("%s: closed: %s", self.client, reason)
