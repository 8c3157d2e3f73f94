"""The states of a connection, and the events that lead from one to the next."""

# Theory of operation
# ===================
#
# A client may send requests without waiting for responses, but the responses go out in the order of the requests
# (BA-8). So a connection is a queue. At its end frames arrive from the socket. At its front at most one thing happens
# at a time, and the state says which:
#
#   READY       Nothing is in progress. The next frame is handled at once, and its response is returned at once. Most
#               connections of most clients are never in another state.
#   DELAYED     A request waits for a deadline or for another client (a long poll, JoinGroup, SyncGroup). Frames behind
#               it stay in the backlog, unread: they may depend on its result.
#   DEFERRED    Requests are handled, but their responses wait until the log is synced. Further requests that only
#               append (OffsetCommit) are handled meanwhile, so that all of them share one sync. Everything else would
#               have to see the effect of the appended changes, which is not visible before the sync.
#   BLOCKED     As DEFERRED, but a frame that must wait for the sync is in the backlog, or there are as many deferred
#               responses as a connection may have. The server stops reading the socket.
#   BACKLOGGED  Frames are left in the backlog because the responses made so far are large. The rest is handled after
#               the client has taken these: a client that sends requests and reads no responses must not fill memory.
#   DRAINING    A request was found behind deferred responses for which the broker closes. The deferred responses
#               are still sent; no further request is handled.
#   CLOSING     All responses that the client gets have been returned. The server sends them and closes the socket.
#   CLOSED      The socket is closed. Results of requests in progress are dropped.
#
# The queue itself is data beside the state: `Connection.backlog` has the frames, `Connection.pending` the deferred
# responses, `Connection.delayed` the delayed operation. These invariants hold whenever no method of the connection runs
# (tests/requests/test_connection_state.py checks them for random traffic):
#
#                        backlog      pending      delayed
#   READY                empty        empty        None
#   DELAYED              any          empty        set
#   DEFERRED             empty        not empty    None
#   BLOCKED              any          not empty    None
#   BACKLOGGED           not empty    empty        None
#   DRAINING             any          not empty    None
#   CLOSING              any          empty        None
#
# That DELAYED has no deferred responses before it follows from DEFERRED: only requests that append are handled there. A
# delayed operation among these is deferred, too: its response has a place in the queue.
#
# Each state also says what the server does with the socket (`kproto_server.network.transport`): it reads in READY and
# DEFERRED, waits until the socket is writable in BACKLOGGED, closes in CLOSING, and otherwise leaves the socket alone.
#
# `TRANSITIONS` is complete: an event that a state does not list cannot happen in it, and would be a defect.

from __future__ import annotations

from enum import IntEnum, auto
from typing import Final


class State(IntEnum):
    """An IntEnum: an Enum's hash is a Python function, and each transition takes two hashes."""

    READY = auto()
    DELAYED = auto()
    DEFERRED = auto()
    BLOCKED = auto()
    BACKLOGGED = auto()
    DRAINING = auto()
    CLOSING = auto()
    CLOSED = auto()


class Event(IntEnum):
    DELAY = auto()
    """A handler returned a delayed operation."""
    COMPLETE = auto()
    """The delayed operation has come to its deadline or was completed; its response is made next."""
    DEFER = auto()
    """A response must wait for the log."""
    BLOCK = auto()
    """A frame must wait for the deferred responses, or there are as many of these as may be."""
    RELEASE = auto()
    """The last deferred response was returned."""
    OVERFLOW = auto()
    """The responses of this call are as large as may be, and frames are left."""
    PROCEED = auto()
    """The server has sent what it had; the backlog is looked at again."""
    FAIL = auto()
    """The connection must be closed, because of a request, a defect, or a limit of the server."""
    ABANDON = auto()
    """The socket is closed."""


READY: Final = State.READY
DELAYED: Final = State.DELAYED
DEFERRED: Final = State.DEFERRED
BLOCKED: Final = State.BLOCKED
BACKLOGGED: Final = State.BACKLOGGED
DRAINING: Final = State.DRAINING
CLOSING: Final = State.CLOSING
CLOSED: Final = State.CLOSED

WAITING: Final = (DELAYED, DEFERRED, BLOCKED, DRAINING)
"""The states in which the broker has work to do before the client can expect a response."""

_ALWAYS = {Event.ABANDON: CLOSED}

TRANSITIONS: Final[dict[State, dict[Event, State]]] = {
    READY: {
        Event.DELAY: DELAYED,
        Event.DEFER: DEFERRED,
        Event.OVERFLOW: BACKLOGGED,
        Event.PROCEED: READY,
        Event.FAIL: CLOSING,
        **_ALWAYS,
    },
    DELAYED: {Event.COMPLETE: READY, Event.PROCEED: DELAYED, Event.FAIL: CLOSING, **_ALWAYS},
    DEFERRED: {
        Event.DEFER: DEFERRED,
        Event.BLOCK: BLOCKED,
        Event.RELEASE: READY,
        Event.PROCEED: DEFERRED,
        Event.FAIL: DRAINING,
        **_ALWAYS,
    },
    BLOCKED: {
        # Some of the deferred responses are out: the frame at the front may be handled now.
        Event.PROCEED: DEFERRED,
        Event.RELEASE: READY,
        Event.FAIL: DRAINING,
        **_ALWAYS,
    },
    BACKLOGGED: {Event.PROCEED: READY, Event.FAIL: CLOSING, **_ALWAYS},
    DRAINING: {Event.RELEASE: CLOSING, Event.PROCEED: DRAINING, Event.FAIL: DRAINING, **_ALWAYS},
    CLOSING: {Event.PROCEED: CLOSING, Event.FAIL: CLOSING, **_ALWAYS},
    CLOSED: _ALWAYS,
}
