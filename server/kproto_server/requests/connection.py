"""From a frame to its answer: one plain function on the way of every request (D12).

Theory of operation. A `Session` is one connection without its socket: `receive` takes what was read, answers every
complete frame that can be answered now, and returns all answers as one piece of bytes. A request that has to wait
parks the session: nothing behind it is looked at until its answer is out (BA-8), so the shell stops reading.

A change that the log has to sync is answered after that (`DeferredResponse`). Commits behind commits
are looked at meanwhile, so that a client which pipelines them has all of them in one sync; whatever else comes behind
waits, as it may ask for what is not there yet. Whoever settles changes finds the sessions with something to send in
`Dispatcher.released`.

The exceptions are here too: versions that the release does not serve (BA-6, BA-21), OffsetCommit v4's two layouts (D1),
bytes that make no sense (BA-6).
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto import registry
from kproto.errors import DecodeError, FrameTooLarge
from kproto.framing import FrameReader
from kproto.headers import read_request_header, response_frame
from kproto_server.requests.context import ConnectionInfo, RequestContext
from kproto_server.requests.deferred import CloseConnection, DeferredResponse, DelayedOperation, NoResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.message import Response
    from kproto_server.cluster.cluster import Node
    from kproto_server.commit_cache.cache import CommitMemo, PendingCommit
    from kproto_server.commit_cache.template import Shape
    from kproto_server.requests.dispatcher import Dispatcher, Endpoint

    Learn = Callable[[Response, bytes], object] | None

logger = logging.getLogger("kproto")

API_VERSIONS = 18
OFFSET_COMMIT = 8
OFFSET_COMMIT_KEY = b"\0\x08"

DEFECT = "API key %d version %d from %r"
CLOSED_BY_DEFECT = "the broker failed on this request; its log says how"

ANSWERS_SIZE_MAX_BYTES = 1 << 20
"""Answers that are made before what they answer to has to take them. A read holds thousands of small requests, and each
may ask for all there is: their answers together have no bound."""
HELD_MAX = 4096
"""Answers of one connection that wait for the log, and what came behind them, before it is read no further."""
HELD_SIZE_MAX_BYTES = 1 << 20
"""Of the requests that they answer: while a disk is slow each of them is in memory, and so is what is to be written."""


class Parked(NamedTuple):
    """A request that waits, and what its answer needs."""

    wait: DelayedOperation
    context: RequestContext
    correlation_id: int
    endpoint: Endpoint


class Held:
    """The place of an answer that waits for the log."""

    __slots__ = ("answer", "is_commit")

    def __init__(self, *, is_commit: bool) -> None:
        self.answer: bytes | None = None
        """Empty if there is none, as the connection is to be closed."""
        self.is_commit = is_commit


class Session:
    """One connection without its socket."""

    __slots__ = (
        "_client_id",
        "_held_bytes",
        "_hit",
        "_hits",
        "_last",
        "_reader",
        "_refused",
        "backlog",
        "closed",
        "dispatcher",
        "held",
        "info",
        "node",
        "on_released",
        "parked",
    )

    def __init__(self, dispatcher: Dispatcher, node: Node, info: ConnectionInfo) -> None:
        self.dispatcher = dispatcher
        self.node = node
        self.info = info
        self.parked: Parked | None = None
        self.closed: str | None = None
        """Why the connection must be closed once everything returned so far is sent; None: it stays."""
        self._reader = FrameReader(dispatcher.frame_size_max_bytes)
        self._refused: str | None = None
        self.backlog: deque[bytes] = deque()
        """Frames that have to wait: for a parked request, or for the client to take the answers before (`proceed`)."""
        self.held: deque[bytes | Held | PendingCommit] = deque()
        """Answers that wait for the log, and those behind them."""
        self._held_bytes = 0
        """Of requests that were answered so, since there was nothing that waits."""
        self.on_released: Callable[[], object] | None = None
        """What the shell does when the session has something to send."""
        self._last: CommitMemo | None = None
        """What the last commit was answered from."""
        self._hit: Shape | None = None
        self._hits = 0
        """The shape of commits that were answered from memory, and how many since somebody looked."""
        self._client_id = ""
        """Of the last request: what is said of a frame that has none."""

    def receive(self, data: bytes, now_ms: int) -> bytes:
        """Take what was read; return the answers that can be given now, in request order."""
        reader = self._reader
        if not reader.buffered and len(data) - 4 == int.from_bytes(data[:4], "big") <= reader.limit:
            # One request, whole: most of what clients send that wait for each answer.
            if not (self.backlog or self.held or self.parked or self.closed or self._refused):
                answer = self._next_answer(data[4:], now_ms)
                if type(answer) is bytes:
                    return answer
                self.held.append(answer)
                self._held_bytes += len(data)
                return b""
            self.backlog.append(data[4:])
            return self.proceed(now_ms)
        reader.feed(data)
        try:
            self.backlog.extend(reader.frames())
        except FrameTooLarge as error:
            self._refused = str(error)  # what came before it is answered first
        return self.proceed(now_ms)

    @property
    def waits(self) -> bool:
        """Whether it is no use to read on: what was read waits for a parked request, or for the log."""
        held = self.held
        return self.parked is not None or (bool(held) and (bool(self.backlog) or self._holds_enough()))

    def _holds_enough(self) -> bool:
        return len(self.held) >= HELD_MAX or self._held_bytes >= HELD_SIZE_MAX_BYTES

    @property
    def unfinished_bytes(self) -> int:
        """What has come of a request whose end has not."""
        return self._reader.buffered

    def give_up(self, reason: str) -> None:
        """Note why the connection is closed from outside."""
        self._close(reason, -1, -1)

    def abandon(self) -> None:
        """The connection has ended: whoever waits for a parked request need not."""
        self.count()
        self.dispatcher.uncounted.pop(self, None)
        self.on_released = None
        parked, self.parked = self.parked, None
        if parked is not None and parked.wait.completion is not None and parked.wait.completion.on_abandon is not None:
            parked.wait.completion.on_abandon()

    def resume(self, now_ms: int) -> bytes:
        """Answer the parked request, and what came behind it."""
        parked, self.parked = self.parked, None
        assert parked is not None, "nothing is parked"
        context = parked.context
        try:
            answer = self._told(parked.wait.answer(), parked.endpoint, context, parked.correlation_id)
        except Exception:  # a defect of ours ends this connection, never the others (BA-13)
            logger.exception(DEFECT, context.api_key, context.api_version, self._client_id)
            self._close(CLOSED_BY_DEFECT, context.api_key, context.api_version)
            return b""
        if type(answer) is bytes and not (self.backlog or self.held or self._refused):
            return answer
        self.held.append(answer)
        return self.proceed(now_ms)

    def proceed(self, now_ms: int) -> bytes:
        """Answer of the backlog what can be answered now; the caller sends that before it comes again."""
        backlog, held = self.backlog, self.held
        answers = self._released() if held else []
        size = 0
        while backlog and self.parked is None and self.closed is None and size < ANSWERS_SIZE_MAX_BYTES:
            if held and not self._goes_beside_held(backlog[0]):
                break
            frame = backlog.popleft()
            answer = self._next_answer(frame, now_ms)
            if held or type(answer) is not bytes:
                held.append(answer)
                self._held_bytes += len(frame)
            else:
                size += len(answer)
                answers.append(answer)
        if self._refused is not None and not backlog and self.parked is None and self.closed is None:
            self._close(self._refused, -1, -1)
        return answers[0] if len(answers) == 1 else b"".join(answers)

    def _next_answer(self, frame: bytes, now_ms: int) -> bytes | Held | PendingCommit:
        """Answer one frame, from memory if it is a commit that is remembered; empty if it is parked or was the last."""
        if self._last is None and not frame.startswith(OFFSET_COMMIT_KEY):
            return self._answer(frame, now_ms)
        memos = self.dispatcher.memos
        try:
            memo = None if memos is None else memos.find(frame, self.node, self._last)
            if memo is None:
                return self._answer(frame, now_ms)
            answer = memo.answer(frame, now_ms, self)
        except Exception:  # the plain path looks after itself: this is a defect of the memory (BA-13)
            logger.exception(DEFECT, OFFSET_COMMIT, -1, self._client_id)
            self._close(CLOSED_BY_DEFECT, OFFSET_COMMIT, -1)
            return b""
        self._last = memo
        if memo.shape is not self._hit:
            self.count()
            self._hit = memo.shape
            self.dispatcher.uncounted[self] = None
        self._hits += 1
        return answer

    def _released(self) -> list[bytes]:
        """Take the answers that wait no more."""
        held = self.held
        answers: list[bytes] = []
        while held:
            first = held[0]
            answer = first if isinstance(first, bytes) else first.answer
            if answer is None:
                break
            answers.append(answer)
            held.popleft()
        if not held:
            self._held_bytes = 0
        return answers

    def _goes_beside_held(self, frame: bytes) -> bool:
        """Whether a frame may be looked at while answers before it wait for the log: commits behind commits."""
        held = self.held
        if self._holds_enough() or not frame.startswith(OFFSET_COMMIT_KEY):
            return False
        last = held[-1]
        return not isinstance(last, Held) or last.is_commit

    def count(self) -> None:
        """Report the requests that were answered from memory, as the plain path reports each."""
        shape, hits = self._hit, self._hits
        self._hits = 0
        if shape is None or not hits:
            return
        observations = self.dispatcher.observations
        observations.request(self.info, shape.client_id, OFFSET_COMMIT, shape.api_version, hits)
        if shape.api_version <= 4:
            retention_ms = shape.request.retention_time_ms
            observations.commit_layout(self.info, shape.client_id, shape.api_version, shape.layout, retention_ms, hits)

    def _answer(self, frame: bytes, now_ms: int) -> bytes | Held:
        """Answer one frame; empty if it is parked or was the last."""
        api_key = api_version = -1
        dispatcher = self.dispatcher
        try:
            api_key, api_version, correlation_id, client_id, position = read_request_header(frame)
            self._client_id = client_id = client_id or ""  # null counts as empty (BA-4)
            if api_key == API_VERSIONS and self._is_downgraded(api_version):
                return self._unsupported_api_versions(client_id, api_version, correlation_id)
            endpoint = dispatcher.endpoint(api_key, api_version)
            state = dispatcher.state
            context = RequestContext(
                state.coordinator,
                state.cluster,
                state.kafka_version,
                state.settings,
                state.log_manager,
                self.node,
                self.info,
                api_key,
                endpoint.api_version,
                client_id,
                now_ms,
            )
            dispatcher.observations.request(self.info, client_id, api_key, api_version)
            if api_key == OFFSET_COMMIT and 2 <= api_version <= 4:
                request = self._decode_offset_commit(endpoint, api_version, frame, position)
            else:
                request, _ = endpoint.decode(frame, position)  # bytes after the body are ignored (BA-7)
            response = endpoint.handle(request, context)
            if isinstance(response, DelayedOperation):
                self._park(response, context, correlation_id, endpoint)
                return b""
            learn = None
            if api_key == OFFSET_COMMIT and dispatcher.memos is not None:
                learn = partial(dispatcher.memos.learn, frame, position, context, request)
            return self._told(response, endpoint, context, correlation_id, learn)
        except (DecodeError, CloseConnection) as error:
            self._close(str(error), api_key, api_version)
            return b""
        except Exception:  # a defect of ours ends this connection, never the others (BA-13)
            logger.exception(DEFECT, api_key, api_version, self._client_id)
            self._close(CLOSED_BY_DEFECT, api_key, api_version)
            return b""

    def _park(self, wait: DelayedOperation, context: RequestContext, correlation_id: int, endpoint: Endpoint) -> None:
        self.parked = Parked(wait, context, correlation_id, endpoint)
        completion = wait.completion
        if completion is not None:
            completion.on_wake = self.release
            if completion.woken:
                self.release()

    def release(self) -> None:
        """Note that there is something to send, for whoever runs the loop."""
        self.dispatcher.released[self] = None

    def _told(
        self,
        response: Response | DeferredResponse | NoResponse,
        endpoint: Endpoint,
        context: RequestContext,
        correlation_id: int,
        learn: Learn = None,
    ) -> bytes | Held:
        """Return the frame of a response, or the place that is held for it."""
        if isinstance(response, NoResponse):
            return b""
        if not isinstance(response, DeferredResponse):
            answer = self._respond(endpoint, context, correlation_id, response)
            if learn is not None:
                learn(response, answer)
            return answer
        held = Held(is_commit=context.api_key == OFFSET_COMMIT)

        def deliver(response: Response | DeferredResponse | NoResponse) -> None:
            if isinstance(response, DeferredResponse):
                response.deliver = deliver
                return
            try:
                held.answer = (
                    b""
                    if isinstance(response, NoResponse)
                    else self._respond(endpoint, context, correlation_id, response)
                )
                if learn is not None:
                    learn(response, held.answer)  # type: ignore[arg-type]  # a commit always has an answer
            except Exception:  # a defect of ours ends this connection, never the others (BA-13)
                logger.exception(DEFECT, context.api_key, context.api_version, context.client_id)
                held.answer = b""
                self._close(CLOSED_BY_DEFECT, context.api_key, context.api_version)
            self.release()

        response.deliver = deliver
        return held

    def _respond(self, endpoint: Endpoint, context: RequestContext, correlation_id: int, response: Response) -> bytes:
        self.dispatcher.observations.response(
            self.info, context.client_id, context.api_key, context.api_version, response
        )
        return response_frame(correlation_id, endpoint.response_header_version, endpoint.encode(response))

    def _is_downgraded(self, api_version: int) -> bool:
        kafka_version = self.dispatcher.state.kafka_version
        return kafka_version.has_api_versions and not kafka_version.serves(API_VERSIONS, api_version)

    def _unsupported_api_versions(self, client_id: str, api_version: int, correlation_id: int) -> bytes:
        """The one API that answers a version it does not know: in v0's layout, with what it does know (BA-21)."""
        from kproto_server.handlers.k18_api_versions import unsupported_version_response

        self.dispatcher.observations.request(self.info, client_id, API_VERSIONS, api_version)
        kafka_version = self.dispatcher.state.kafka_version
        body = registry.codec(API_VERSIONS, 0).encode_response(unsupported_version_response(kafka_version))
        return response_frame(correlation_id, 0, body)

    def _decode_offset_commit(self, endpoint: Endpoint, api_version: int, frame: bytes, position: int) -> Any:
        """OffsetCommit v2-v4 carry a retention override, and v4 comes in two layouts (D1, D2): note both."""
        layout: str
        if api_version == 4:
            from kproto.offset_commit_v4 import decode_v4

            request, _, layout = decode_v4(frame, position)
        else:
            request, _ = endpoint.decode(frame, position)
            layout = f"v{api_version}"
        observations = self.dispatcher.observations
        observations.commit_layout(self.info, self._client_id, api_version, layout, request.retention_time_ms)
        return request

    def _close(self, reason: str, api_key: int, api_version: int) -> None:
        self.closed = reason
        self.dispatcher.observations.closed(self.info, self._client_id, api_key, api_version, reason)
        logger.info("%s %r: closed: %s", self.info.client_host, self._client_id, reason)
