"""The attributes of the client that sends a request about its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.jvm.uuid_text import uuid_text
from kproto_server.client_metrics.matching import Client
from kproto_server.client_metrics.subscriptions import Sender

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext


def client_of(client_instance_id: bytes, context: RequestContext) -> Client:
    """Return the attributes of the client that has this id and sent the request."""
    connection = context.connection
    return Client(
        client_instance_id=uuid_text(client_instance_id),
        client_id=context.client_id,
        client_software_name=connection.software_name,
        client_software_version=connection.software_version,
        client_source_address=connection.client_host.removeprefix("/"),
        client_source_port=str(connection.client_port),
    )


def sender_of(context: RequestContext) -> Sender:
    """Return where a request came in."""
    return Sender(context.node.node_id, context.connection)
