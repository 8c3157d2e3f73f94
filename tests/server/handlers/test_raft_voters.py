"""AddRaftVoter and RemoveRaftVoter, with the responses of 3.9.2, 4.2.2 and 4.4.0 whose settings name the voters."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kproto.messages.k80_add_raft_voter import AddRaftVoterRequest, Listener
from kproto.messages.k81_remove_raft_voter import RemoveRaftVoterRequest
from tests.coordinator.broker_state import ask, new_state

RELEASES = ("3.9", "4.2", "4.4")
OWN = "of this cluster"
LISTENERS = (Listener(name="CONTROLLER", host="localhost", port=9093),)
VOTER = {"cluster_id": OWN, "voter_id": 7, "voter_directory_id": b"\1" * 16}
NO_VOTER = "voter request didn't include a valid voter"
NO_ENDPOINT = "Add voter request didn't include the endpoint ({}) for the default listener ListenerName(CONTROLLER)"
STATIC = "Cluster doesn't support {} voter because the kraft.version feature is 0"


def request(state: Any, *, adds: bool, **values: Any) -> AddRaftVoterRequest | RemoveRaftVoterRequest:
    given = {**VOTER, **values}
    if given["cluster_id"] == OWN:
        given["cluster_id"] = state.cluster.cluster_id
    if adds:
        return AddRaftVoterRequest(timeout_ms=3000, **{"listeners": LISTENERS, **given})
    return RemoveRaftVoterRequest(**given)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({}, ErrorCode.UNSUPPORTED_VERSION, STATIC),
        ({"cluster_id": None}, ErrorCode.UNSUPPORTED_VERSION, STATIC),
        ({"voter_id": 1}, ErrorCode.UNSUPPORTED_VERSION, STATIC),
        ({"voter_directory_id": bytes(16)}, ErrorCode.INVALID_REQUEST, NO_VOTER),
        ({"voter_id": -1}, ErrorCode.INVALID_REQUEST, NO_VOTER),
        ({"cluster_id": "x"}, ErrorCode.INCONSISTENT_CLUSTER_ID, 'The given id "x" doesn\'t match the cluster id "{}"'),
    ],
)
def test_no_voter_is_added_or_removed(values: dict[str, Any], error: ErrorCode, message: str, release: str) -> None:
    state = new_state(release)
    for adds, participle, verb in ((True, "adding", "Add"), (False, "removing", "Remove")):
        response = ask(state, request(state, adds=adds, **values), 0)
        expected = message.format(state.cluster.cluster_id if "given id" in message else participle)
        assert response.error_code == error
        assert response.error_message == (f"{verb} {expected}" if message == NO_VOTER else expected)


@pytest.mark.parametrize(
    ("listeners", "endpoints"),
    [
        ((), "Endpoints(endpoints={})"),
        ((Listener(name="X", host="h", port=1),), "Endpoints(endpoints={ListenerName(X)=h/<unresolved>:1})"),
    ],
)
def test_a_new_voter_has_the_listener_of_controllers(listeners: Any, endpoints: str) -> None:
    state = new_state("4.4")
    response = ask(state, request(state, adds=True, listeners=listeners), 1)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message == NO_ENDPOINT.format(endpoints)


def test_voters_are_static_with_kraft_version_1_too() -> None:
    state = new_state("4.4")
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)
    ask(state, UpdateFeaturesRequest(timeout_ms=1000, feature_updates=(update,), validate_only=False), 2)
    for adds in (True, False):
        response = ask(state, request(state, adds=adds), 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert "brokers of kproto" in response.error_message
