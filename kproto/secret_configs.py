"""The configs whose values are secrets: `repr` of a request and the request log leave them out."""

from __future__ import annotations

SECRET_CONFIGS: tuple[str, ...] = (".password", ".passphrase", "ssl.key", ".jaas.config", ".secret", ".master.key")
"""What their names have."""


def is_secret_config(name: str) -> bool:
    """Return whether the value of a config is a secret."""
    return any(part in name for part in SECRET_CONFIGS)
