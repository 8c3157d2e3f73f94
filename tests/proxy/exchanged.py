"""A connection's two directions without sockets, and requests and responses for it."""

from __future__ import annotations

from kproto import registry
from kproto.headers import request_frame, response_frame
from kproto.message import Request, Response
from kproto_server.observation.observe import Observations
from kproto_server.proxy.exchanges import Exchanges
from kproto_server.proxy.faults import ProxyRules
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.requests.context import ConnectionInfo

OWN_HOST = "proxy"


def own_address(host: str, port: int) -> tuple[str, int]:
    """Return the proxy's address for a broker."""
    return OWN_HOST, port + 1000


def new_exchanges(
    observations: Observations | None = None, release: str = "latest", rules: ProxyRules | None = None
) -> Exchanges:
    return Exchanges(
        Observations() if observations is None else observations,
        ConnectionInfo("/127.0.0.1"),
        KafkaVersion.named(release).api_versions,
        own_address,
        rules,
    )


def asked(request: Request, version: int, correlation_id: int = 1, client_id: str = "app") -> bytes:
    return request_frame(request, version, correlation_id=correlation_id, client_id=client_id)


def response(value: Response, version: int, correlation_id: int = 1) -> bytes:
    header_version = registry.header_versions(type(value)._api_key, version)[1]
    return response_frame(correlation_id, header_version, value.encode(version))


def raw(api_key: int, version: int, correlation_id: int = 1, body: bytes = b"") -> bytes:
    """Return a request with header v1."""
    header = b"".join(number.to_bytes(2, "big") for number in (api_key, version))
    frame = header + correlation_id.to_bytes(4, "big") + b"\0\3app" + body
    return len(frame).to_bytes(4, "big") + frame
