"""From Kafka's names to ours."""

import re


def snake(name: str) -> str:
    """Return ours: "CommittedLeaderEpoch" is "committed_leader_epoch"."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
