"""AddRaftVoter (API key 80): add a voter to the controllers' quorum, which is static (KIP-853)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k80_add_raft_voter import AddRaftVoterResponse
from kproto_server.handlers._raft_voters import LISTENER, check_voter, invalid, static_voters

if TYPE_CHECKING:
    from kproto.messages.k80_add_raft_voter import AddRaftVoterRequest
    from kproto_server.cluster.topics import Refusal
    from kproto_server.requests.context import RequestContext


def handle(request: AddRaftVoterRequest, context: RequestContext) -> AddRaftVoterResponse:
    refused = check_voter(request, context.cluster, "add") or _check_listeners(request)
    refused = refused or static_voters(context.cluster, "adding")
    return AddRaftVoterResponse(throttle_time_ms=0, error_code=refused.error, error_message=refused.message)


def _check_listeners(request: AddRaftVoterRequest) -> Refusal | None:
    if any(listener.name == LISTENER for listener in request.listeners):
        return None
    found = ", ".join(f"ListenerName({one.name})={one.host}/<unresolved>:{one.port}" for one in request.listeners)
    endpoints = f"Endpoints(endpoints={{{found}}})"
    return invalid(
        f"Add voter request didn't include the endpoint ({endpoints}) for the default listener ListenerName({LISTENER})"
    )
