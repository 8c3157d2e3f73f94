"""Every address of a broker in a response is replaced, in every version.

Method. The declarations are searched for structs with a host and a port, so that none can be forgotten. A response with
such structs goes through the proxy in each version, and is compared with what went in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto import registry
from kproto.declaration import DEFAULTS, Field, Struct, WireType, fields_of
from kproto.headers import read_response
from kproto.message import Response
from kproto.messages import APIS
from kproto_server.proxy.rewriting import BROKER_ARRAYS, FIND_COORDINATOR, NOT_BROKERS, rewritten
from tests.proxy.exchanged import OWN_HOST, new_exchanges, own_address, raw, response

CASES = [(key, version) for key in BROKER_ARRAYS for version in registry.versions(key)]
UNKNOWN = [(key, registry.versions(key)[-1] + 1) for key in BROKER_ARRAYS]
HOST, PORT = "broker-1.internal", 9093


def structs_of(cls: type[Struct]) -> Iterator[type[Struct]]:
    yield cls
    for field in fields_of(cls):
        kind: WireType | None = field.type
        while kind is not None:
            if kind.struct is not None:
                yield from structs_of(kind.struct)
            kind = kind.element


def has_address(cls: type[Struct]) -> bool:
    return {"host", "port"} <= {field.name for field in fields_of(cls)}


def filled(cls: type[Struct], version: int) -> Any:
    """Return a value with one element in each array, and a broker's address in each host and port."""
    values = {field.name: value(field, version) for field in fields_of(cls) if field.versions.covers(version)}
    return cls(**values)


def value(field: Field, version: int) -> Any:
    if field.name == "host":
        return HOST
    if field.name == "port":
        return PORT
    return of_type(field.type, version)


def of_type(kind: WireType, version: int) -> Any:
    if kind.element is not None:
        return (of_type(kind.element, version),)
    return DEFAULTS[kind.kind] if kind.struct is None else filled(kind.struct, version)


def test_all_responses_with_addresses_are_known() -> None:
    found = {key for key in APIS if any(map(has_address, structs_of(registry.response_class(key))))}
    assert found == BROKER_ARRAYS.keys() | NOT_BROKERS.keys()
    assert not BROKER_ARRAYS.keys() & NOT_BROKERS.keys()


@pytest.mark.parametrize("api_key", BROKER_ARRAYS)
def test_the_array_is_the_only_place_of_an_address(api_key: int) -> None:
    cls = registry.response_class(api_key)
    with_address = {one for one in structs_of(cls) if has_address(one)} - {cls}
    (array,) = [field for field in fields_of(cls) if field.name == BROKER_ARRAYS[api_key]]
    assert array.type.element is not None
    assert {array.type.element.struct} == with_address
    assert has_address(cls) is (api_key == FIND_COORDINATOR)


@pytest.mark.parametrize(("api_key", "version"), CASES)
def test_addresses_are_replaced_in_every_version(api_key: int, version: int) -> None:
    exchanges = new_exchanges()
    sent: Response = filled(registry.response_class(api_key), version)
    frame = response(sent, version, 7)
    # A request without a body is malformed, and read as far as its header.
    exchanges.requests.feed(raw(api_key, version, 7, b"\0" * 8 if api_key else b"\0\1\0\1\0\1"))
    (received,) = exchanges.responses.feed(frame)
    assert isinstance(received, bytes)
    correlation_id, shown = read_response(received[4:], type(sent), version)
    assert correlation_id == 7
    assert shown == rewritten(sent, own_address)
    expected = repr(sent).replace(f"host={HOST!r}", f"host={OWN_HOST!r}").replace(f"port={PORT}", f"port={PORT + 1000}")
    assert repr(shown) == expected
    has_brokers = repr(sent) != expected
    assert has_brokers is (api_key > 1 or version >= {0: 10, 1: 16}[api_key])
    assert has_brokers or received == frame


@pytest.mark.parametrize(("api_key", "version"), UNKNOWN)
def test_a_version_that_is_not_known_passes_and_the_log_says_so(
    api_key: int, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    exchanges = new_exchanges()
    request, frame = raw(api_key, version, 7, b"\0\0\1\0\1"), b"\0\0\0\6\0\0\0\7no"
    assert exchanges.requests.feed(request) == [request]
    assert exchanges.responses.feed(frame) == [frame]
    assert [record.getMessage() for record in caplog.records] == [
        f"the response to {APIS[api_key]} v{version} passes with the addresses of brokers: "
        "kproto does not know the version"
    ]


@pytest.mark.parametrize(("api_key", "version"), [*UNKNOWN, (3, 1)])
def test_the_log_has_nothing_of_exchanges_that_are_not_relayed(
    api_key: int, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Those of a capture, for example: here of a version that is not known, and of a damaged response."""
    exchanges = new_exchanges()
    exchanges.address_of = None
    exchanges.requests.feed(raw(api_key, version, 7, b"\0\0\1\0\1"))
    frame = b"\0\0\0\6\0\0\0\7no"
    assert exchanges.responses.feed(frame) == [frame]
    assert caplog.records == []


@pytest.mark.parametrize("address", [("", -1), ("", 0), ("broker", -1)])
def test_a_coordinator_that_is_not_known_stays(address: tuple[str, int]) -> None:
    cls: Any = registry.response_class(FIND_COORDINATOR)
    unknown = cls(host=address[0], port=address[1], node_id=-1, error_code=15)
    assert rewritten(unknown, own_address) == unknown


def test_ports_are_opened_in_the_order_of_node_ids() -> None:
    from kproto.messages.k03_metadata import MetadataResponse, MetadataResponseBroker

    brokers = tuple(MetadataResponseBroker(node_id=node, host=f"b{node}", port=9092) for node in (3, 1, 2))
    asked_for: list[str] = []

    def address_of(host: str, port: int) -> tuple[str, int]:
        asked_for.append(host)
        return host, port

    rewritten(MetadataResponse(brokers=brokers, topics=()), address_of)
    assert asked_for[:3] == ["b1", "b2", "b3"]
