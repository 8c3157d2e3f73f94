"""The voters of the controllers' quorum, which are static, and the checks of requests to add or remove one.

Errors and messages are those of a cluster whose settings name its voters (measured on 3.9.2, 4.2.2 and 4.4.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.features import KRAFT_VERSION
from kproto_server.cluster.topics import Refusal

if TYPE_CHECKING:
    from kproto.messages.k80_add_raft_voter import AddRaftVoterRequest
    from kproto.messages.k81_remove_raft_voter import RemoveRaftVoterRequest
    from kproto_server.cluster.cluster import Cluster

LISTENER = "CONTROLLER"
"""The name of the voters' listener. Kproto has no listener of its own for controllers: clients get the brokers'."""
NO_DIRECTORY = bytes(16)
OWN_VOTERS = "The voters are the brokers of kproto, which only its user starts and stops."


def invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def check_voter(request: AddRaftVoterRequest | RemoveRaftVoterRequest, cluster: Cluster, verb: str) -> Refusal | None:
    """Return the problem of a request, None if it names this cluster and a voter.

    Args:
        verb: what the request does with a voter, in messages.
    """
    if request.cluster_id is not None and request.cluster_id != cluster.cluster_id:
        message = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{cluster.cluster_id}"'
        return Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    if request.voter_id < 0 or request.voter_directory_id == NO_DIRECTORY:
        return invalid(f"{verb.capitalize()} voter request didn't include a valid voter")
    return None


def static_voters(cluster: Cluster, participle: str) -> Refusal:
    """Return the error of a valid request: the voters are static.

    Args:
        participle: of the verb of `check_voter`.
    """
    if cluster.features.level(KRAFT_VERSION) > 0:
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, OWN_VOTERS)
    message = f"Cluster doesn't support {participle} voter because the kraft.version feature is 0"
    return Refusal(ErrorCode.UNSUPPORTED_VERSION, message)
