"""From Kafka's names to kproto's."""

import re


def snake(name: str) -> str:
    """Return ``committed_leader_epoch`` for ``CommittedLeaderEpoch``."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
