"""Kafka's settings of key stores and trust stores, which a broker without them does not need to import."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kproto_server.configuration.settings import Settings

STORE_SETTINGS = frozenset({
    "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password", "ssl.key.password",
    "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.truststore.location", "ssl.truststore.type",
    "ssl.truststore.password", "ssl.truststore.certificates",
})  # fmt: skip


def has_own_stores(settings: Settings) -> list[str]:
    """Return the settings of stores that were given; empty: kproto makes the certificates."""
    return sorted(name for name in STORE_SETTINGS if settings.is_set(name))
