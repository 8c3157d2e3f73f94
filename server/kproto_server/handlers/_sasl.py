"""What SaslHandshake and SaslAuthenticate have in common: mechanisms, sessions, and how a failure ends a connection."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order
from kproto_server.configuration.settings import MECHANISMS_SETTING
from kproto_server.deferred import Completion, DelayedOperation, Piece, Shaped
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.sasl import SaslRules

if TYPE_CHECKING:
    from kproto.message import Response
    from kproto_server.requests.context import RequestContext
    from kproto_server.security.sasl import Authentication


class SaslBehavior(VersionBehavior):
    """What Kafka releases do differently in SASL (measured on 2.1.1, 2.8.2 and 4.4.0; delegation tokens on 3.0.2
    and 3.5.2)."""

    @cached_property
    def message_without_error(self) -> str | None:
        """The error message of a SaslAuthenticate response without an error: null up to 2.2."""
        return "" if self.at_least(2, 3) else None

    @cached_property
    def rules(self) -> SaslRules:
        """Those of the mechanisms."""
        return SaslRules(
            names_faults_of_plain=self.at_least(2, 3),
            checks_nonce=self.at_least(3, 7),
            ends_session_with_delegation_token=self.at_least(3, 5),
            failed_during="Authentication failed during authentication"
            if self.at_least(2, 2)
            else "Authentication failed",
        )


def enabled_mechanisms(context: RequestContext) -> tuple[str, ...]:
    """Return the mechanisms of the listener (`sasl.enabled.mechanisms`), in the order of Kafka's HashMap."""
    names = _setting(MECHANISMS_SETTING, context)
    return tuple(in_hash_order((name.strip() for name in names.split(",")), java_hash))


def note_session(authentication: Authentication, context: RequestContext) -> int:
    """Begin the session of a client that is authenticated; return its length in ms, 0: without an end (KIP-368)."""
    return authentication.begin_session(context.now_ms, int(_setting("connections.max.reauth.ms", context)))


def _setting(name: str, context: RequestContext) -> str:
    """Return a setting as the listener of a request has it."""
    listener = context.connection.listener or context.cluster.main_listener
    return context.settings.of(context.node.node_id).str_of_listener(listener, name)


def failing(response: Response, reason: str, context: RequestContext) -> DelayedOperation:
    """Return the operation that responds to a failed authentication after the delay, and then closes."""
    return DelayedOperation(
        context.now_ms + _delay_ms(context), lambda: Shaped(response, lambda frame: Piece(frame, close_reason=reason))
    )


def closing_later(response: Response, reason: str, context: RequestContext) -> DelayedOperation:
    """Return the operation that responds at once, and closes after the delay."""
    end = DelayedOperation(context.now_ms + _delay_ms(context), lambda: Piece(b"", close_reason=reason))
    at_once = Completion()
    at_once.complete()
    return DelayedOperation(None, lambda: Shaped(response, lambda frame: Piece(frame, then=end)), at_once)


def _delay_ms(context: RequestContext) -> int:
    return context.settings.of(context.node.node_id).int("connection.failed.authentication.delay.ms")
