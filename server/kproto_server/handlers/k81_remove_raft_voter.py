"""RemoveRaftVoter (API key 81): remove a voter from the controllers' quorum, which is static (KIP-853)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k81_remove_raft_voter import RemoveRaftVoterResponse
from kproto_server.handlers._raft_voters import check_voter, static_voters

if TYPE_CHECKING:
    from kproto.messages.k81_remove_raft_voter import RemoveRaftVoterRequest
    from kproto_server.requests.context import RequestContext


def handle(request: RemoveRaftVoterRequest, context: RequestContext) -> RemoveRaftVoterResponse:
    refused = check_voter(request, context.cluster, "remove") or static_voters(context.cluster, "removing")
    return RemoveRaftVoterResponse(throttle_time_ms=0, error_code=refused.error, error_message=refused.message)
