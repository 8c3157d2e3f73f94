"""The client quotas of a running broker, as a test reads and changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.messages.k49_alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kproto_server.broker.own_requests import ask, check
from kproto_server.quotas.entities import CLIENT_ID, IP, USER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.network.server import Server
    from kproto_server.quotas.entities import Entity

VERSION = 1
"""The newest version of the request."""
DEFAULT = ""
"""The name of the default entity of a type, for all that have no quota of their own."""


class QuotaDescription(NamedTuple):
    """The quotas of an entity: users, client ids, both together, or addresses; None: is not part of it, or not set."""

    user: str | None
    client_id: str | None
    ip: str | None
    producer_byte_rate: float | None
    consumer_byte_rate: float | None
    request_percentage: float | None
    controller_mutation_rate: float | None
    connection_creation_rate: float | None


class BrokerQuotas:
    """The client quotas of a running broker."""

    def __init__(self, run: RunInBrokerThread) -> None:
        self._run = run

    def describe(self) -> tuple[QuotaDescription, ...]:
        """Return the quotas of all entities, in the order in which they were set first."""
        return self._run(
            lambda server: tuple(
                _description(entity, values) for entity, values in server.state.cluster.client_quotas.items()
            )
        )

    def set(
        self,
        *,
        user: str | None = None,
        client_id: str | None = None,
        ip: str | None = None,
        producer_byte_rate: float | None = None,
        consumer_byte_rate: float | None = None,
        request_percentage: float | None = None,
        controller_mutation_rate: float | None = None,
        connection_creation_rate: float | None = None,
    ) -> None:
        """Set quotas of an entity, for requests from now on; others that it has stay.

        Args:
            user: a user of SASL, or the subject of a certificate; empty: all users without quotas of their own.
            client_id: a client id; empty: all client ids without quotas of their own.
            ip: an address, not together with a user or a client id; empty: all addresses without quotas of their own.
            producer_byte_rate: bytes of Produce requests per second.
            consumer_byte_rate: bytes of Fetch responses per second.
            request_percentage: time of request handlers, in percent of one thread.
            controller_mutation_rate: partitions created and deleted per second.
            connection_creation_rate: new connections per second, of an address.

        Raises:
            RequestRefused: the entity can't have the quotas, or the release does not have them.
        """
        values = {
            "producer_byte_rate": producer_byte_rate,
            "consumer_byte_rate": consumer_byte_rate,
            "request_percentage": request_percentage,
            "controller_mutation_rate": controller_mutation_rate,
            "connection_creation_rate": connection_creation_rate,
        }
        ops = tuple(OpData(key=key, value=value, remove=False) for key, value in values.items() if value is not None)
        entry = EntryData(entity=_entity(user, client_id, ip), ops=ops)
        self._run(lambda server: _alter(server, entry))

    def remove(self, *, user: str | None = None, client_id: str | None = None, ip: str | None = None) -> int:
        """Remove all quotas of an entity, or of all without arguments; return of how many entities they were."""
        names = {kind: name or None for kind, name in _names(user, client_id, ip).items()}

        def remove(server: Server) -> int:
            found = [
                (entity, values)
                for entity, values in server.state.cluster.client_quotas.items()
                if not names or dict(entity) == names
            ]
            for entity, values in found:
                named = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
                ops = tuple(OpData(key=key, value=0.0, remove=True) for key in values)
                _alter(server, EntryData(entity=named, ops=ops))
            return len(found)

        return self._run(remove)


def _names(user: str | None, client_id: str | None, ip: str | None) -> dict[str, str]:
    given = {USER: user, CLIENT_ID: client_id, IP: ip}
    return {kind: name for kind, name in given.items() if name is not None}


def _entity(user: str | None, client_id: str | None, ip: str | None) -> tuple[EntityData, ...]:
    names = _names(user, client_id, ip)
    return tuple(EntityData(entity_type=kind, entity_name=name or None) for kind, name in names.items())


def _alter(server: Server, entry: EntryData) -> None:
    (result,) = ask(server, AlterClientQuotasRequest(entries=(entry,), validate_only=False), VERSION).entries
    check("client quotas", result.error_code, result.error_message)


def _description(entity: Entity, values: Mapping[str, float]) -> QuotaDescription:
    names = {kind: name or DEFAULT for kind, name in entity}
    numbers = (values.get(key) for key in QuotaDescription._fields[3:])
    return QuotaDescription(names.get(USER), names.get(CLIENT_ID), names.get(IP), *numbers)
