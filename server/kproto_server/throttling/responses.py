"""The response to a client that is throttled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.deferred import NO_RESPONSE, DelayedOperation, LargeResponse, Piece, Shaped, soon
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto.message import Response
    from kproto_server.deferred import Result
    from kproto_server.releases.kafka_version import KafkaVersion


class ThrottlingBehavior(VersionBehavior):
    """What Kafka releases do differently when they throttle a client."""

    @property
    def mutes_after_response(self) -> bool:
        """Whether the response goes out at once, and later requests wait: from 2.0 on (KIP-219). Before, the response
        itself waits."""
        return self.at_least(2, 0)


def throttled(response: Response | LargeResponse, throttle_ms: int, now_ms: int, kafka_version: KafkaVersion) -> Result:
    """Return a response behind which the connection is not read for the throttle time.

    A large response is sent as it is: the next request of the client is throttled in its place.
    """
    if not kafka_version.behavior(ThrottlingBehavior).mutes_after_response:
        return DelayedOperation(now_ms + throttle_ms, lambda: response)
    if isinstance(response, LargeResponse):
        return response

    def mute(frame: bytes) -> Piece:
        return Piece(frame, DelayedOperation(now_ms + throttle_ms, lambda: NO_RESPONSE))

    return soon(Shaped(response, mute), now_ms)
