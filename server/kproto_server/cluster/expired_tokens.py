"""The task that removes delegation tokens that have ended, by the broker's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.clock import PeriodicTask

if TYPE_CHECKING:
    from kproto_server.clock import Clock
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.configuration.dynamic_settings import DynamicSettings


class ExpiredTokens(PeriodicTask):
    """Removes the delegation tokens that have ended every `delegation.token.expiry.check.interval.ms`.

    Until then they log in, as in Kafka.
    """

    def __init__(self, settings: DynamicSettings, cluster: Cluster, clock: Clock) -> None:
        super().__init__(clock, settings.current.int("delegation.token.expiry.check.interval.ms"), self.remove_expired)
        self._cluster = cluster

    def remove_expired(self, now_ms: int) -> None:
        """Remove the tokens that have ended; the next iteration of the event loop saves it."""
        tokens = self._cluster.delegation_tokens
        assert tokens is not None, "the task runs only with a secret key"
        kept = [token for token in tokens.tokens if not token.is_expired(now_ms)]
        if len(kept) < len(tokens.tokens):
            tokens.replace(kept)
            self._cluster.changed()
