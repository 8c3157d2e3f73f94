"""AlterUserScramCredentials (API key 51): set and remove the SCRAM credentials of users (KIP-554)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order
from kproto.jvm.scala_hash_map import SMALL, in_scala_order, pairs_in_tree
from kproto.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kproto_server.handlers._controller import not_controller
from kproto_server.security.users import ITERATIONS, ITERATIONS_MAX, SCRAM_TYPES, credential_of_salted

if TYPE_CHECKING:
    from kproto.messages.k51_alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        ScramCredentialDeletion,
        ScramCredentialUpsertion,
    )
    from kproto_server.requests.context import RequestContext
    from kproto_server.security.users import Changes, ScramCredentials

CREDENTIALS_MAX = 10_000
NAME_AND_SALT_MAX = 10_000
"""Characters and bytes."""


class Refusal(NamedTuple):
    """Why a user's credentials are not altered."""

    error: ErrorCode
    message: str | None


TWICE = Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
MISSING = Refusal(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
TOO_MANY = Refusal(
    ErrorCode.POLICY_VIOLATION,
    f"kproto has at most {CREDENTIALS_MAX} credentials, and {NAME_AND_SALT_MAX} characters of name and salt",
)


def handle(request: AlterUserScramCredentialsRequest, context: RequestContext) -> AlterUserScramCredentialsResponse:
    if not_controller(context):
        names = dict.fromkeys(one.name for one in _named(request))
        refused = Refusal(ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER.message)
        return _response(dict.fromkeys(names, refused))
    is_kraft = context.kafka_version.is_kraft
    plan = _plan_of_quorum if is_kraft else _plan_of_zookeeper
    results = plan(request, context.cluster.scram_credentials)
    changes = _changes(request, results, is_kraft=is_kraft)
    if changes:
        altered = context.cluster.scram_credentials.changed(changes)
        if len(altered) > CREDENTIALS_MAX:
            return _response(dict.fromkeys(results, TOO_MANY))
        context.cluster.alter_scram_credentials(altered)
    return _response(results, message=None if is_kraft else "")


Results = dict[str, Refusal | None]
"""By user, in the order of the response; None: altered."""


def _plan_of_quorum(request: AlterUserScramCredentialsRequest, credentials: ScramCredentials) -> Results:
    """Return what a controller of KRaft decides: a user may be named once, whatever the mechanism is."""
    deleted: dict[str, None] = {}
    upserted: dict[str, None] = {}
    refused: Results = {}
    for deletion in request.deletions:
        name = deletion.name
        if name in refused:
            continue
        refusal = TWICE if name in deleted else _fault(deletion) or _missing(deletion, credentials)
        if refusal is None:
            deleted[name] = None
        else:
            deleted.pop(name, None)
            refused[name] = refusal
    for upsertion in request.upsertions:
        name = upsertion.name
        if name in refused:
            continue
        refusal = TWICE if name in deleted or name in upserted else _fault(upsertion) or _fault_of_numbers(upsertion)
        if refusal is None:
            upserted[name] = None
        else:
            deleted.pop(name, None)
            upserted.pop(name, None)
            refused[name] = refusal
    results: Results = {}
    for names in (deleted, upserted, refused):
        results |= {name: refused.get(name) for name in in_hash_order(names, java_hash)}
    return results


def _plan_of_zookeeper(request: AlterUserScramCredentialsRequest, credentials: ScramCredentials) -> Results:
    """Return what a controller with ZooKeeper decides: a user may be named once for each mechanism.

    Each reason has a Scala map or set of its own.
    """
    illegal: Results = {}
    for deletion in request.deletions:
        if refusal := _fault(deletion):
            illegal[deletion.name] = refusal
    for upsertion in request.upsertions:
        if refusal := _fault(upsertion) or _fault_of_numbers(upsertion):
            illegal[upsertion.name] = refusal
    results: Results = {name: illegal[name] for name in in_scala_order(illegal)}
    named = [(one.name, one.mechanism) for one in _named(request) if one.name not in results]
    twice = pairs_in_tree(pair for pair, count in Counter(named).items() if count > 1)
    results |= dict.fromkeys(in_scala_order(name for name, _ in twice), TWICE)
    possible = in_scala_order(name for name, _ in named if name not in results)
    missing = (
        deletion.name
        for deletion in request.deletions
        if deletion.name not in results and _missing(deletion, credentials)
    )
    results |= dict.fromkeys(in_scala_order(missing), MISSING)
    altered = (name for name in possible if name not in results)
    return results | dict.fromkeys(in_scala_order(altered, is_tree=len(possible) > SMALL))


def _named(request: AlterUserScramCredentialsRequest) -> list[ScramCredentialDeletion | ScramCredentialUpsertion]:
    return [*request.upsertions, *request.deletions]


def _fault(one: ScramCredentialDeletion | ScramCredentialUpsertion) -> Refusal | None:
    if not one.name:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if one.mechanism not in SCRAM_TYPES:
        return Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return None


def _fault_of_numbers(upsertion: ScramCredentialUpsertion) -> Refusal | None:
    if upsertion.iterations < ITERATIONS:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > ITERATIONS_MAX:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if len(upsertion.name) + len(upsertion.salt) > NAME_AND_SALT_MAX:
        return TOO_MANY
    return None


def _missing(deletion: ScramCredentialDeletion, credentials: ScramCredentials) -> Refusal | None:
    is_known = SCRAM_TYPES[deletion.mechanism] in credentials.iterations(deletion.name)
    return None if is_known else MISSING


def _changes(request: AlterUserScramCredentialsRequest, results: Results, *, is_kraft: bool) -> Changes:
    """Return the credentials of the users that are altered; a user without a salted password is refused."""
    changes: Changes = {}
    for deletion in request.deletions:
        if results[deletion.name] is None:
            changes[deletion.name, SCRAM_TYPES[deletion.mechanism]] = None
    for upsertion in request.upsertions:
        name = upsertion.name
        if results[name] is not None:
            continue
        mechanism = SCRAM_TYPES[upsertion.mechanism]
        if not upsertion.salted_password:
            message = None if is_kraft else ErrorCode.UNKNOWN_SERVER_ERROR.message
            results[name] = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, message)
            continue
        changes[name, mechanism] = credential_of_salted(
            mechanism, upsertion.salted_password, upsertion.salt, upsertion.iterations
        )
    return {key: changed for key, changed in changes.items() if results[key[0]] is None}


def _response(results: Results, message: str | None = None) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        throttle_time_ms=0,
        results=tuple(
            AlterUserScramCredentialsResult(
                user=name,
                error_code=ErrorCode.NONE if refusal is None else refusal.error,
                error_message=message if refusal is None else refusal.message,
            )
            for name, refusal in results.items()
        ),
    )
