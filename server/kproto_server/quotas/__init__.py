"""Client quotas: their entities, keys and values (KIP-13, KIP-546, KIP-612)."""
