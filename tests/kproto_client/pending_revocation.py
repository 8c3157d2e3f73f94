"""A member of kproto's broker whose revocation waits for its next poll."""

from kproto_server import Broker


def wait_for_revocation(broker: Broker, group: str) -> None:
    """Let an eager group rebalance, and wait until its member, which does not poll, knows of it.

    The second heartbeat shows that the member has the response of the first one.
    """
    broker.groups.force_rebalance(group)
    broker.requests.wait(api="Heartbeat", group=group, error="REBALANCE_IN_PROGRESS", count=2)
