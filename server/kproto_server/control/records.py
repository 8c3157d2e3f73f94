"""Records as JSON: keys, values and headers are text, or base64 where they are not UTF-8."""

from __future__ import annotations

import base64
import binascii
import itertools
from collections.abc import Sequence  # read by `get_type_hints`
from typing import TYPE_CHECKING, Any, TypedDict

from kproto_server.broker.producing import CompressionName, NewRecord, Outcome, Text
from kproto_server.broker.records import IsolationLevel
from kproto_server.control.problem import bad_request
from kproto_server.control.results import Result
from kproto_server.control.schema import INTEGER, STRING, Schema, a_list, an_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.broker.controls import BrokerControls
    from kproto_server.broker.producing import ProducedRecord
    from kproto_server.broker.records import TopicRecord

RECORDS_MAX_BYTES = 4 << 20
"""Keys and values of the records in one response, at least one record."""
BASE64 = "_base64"
"""The end of the name of a field whose value is bytes in base64; the text is null then."""


class JsonHeader(TypedDict, total=False):
    """A header of a record."""

    name: str
    value: str | None
    value_base64: str


class JsonRecord(TypedDict, total=False):
    """A record to produce."""

    key: str | None
    key_base64: str
    value: str | None
    value_base64: str
    headers: Sequence[JsonHeader]
    timestamp_ms: int
    partition: int


def produce(
    broker: BrokerControls,
    topic: str,
    *,
    records: Sequence[JsonRecord],
    partition: int | None = None,
    compression: CompressionName = "none",
    transaction: Outcome | None = None,
    transactional_id: str = "kproto",
) -> tuple[ProducedRecord, ...]:
    """Append records to a topic, and return where they are.

    Raises:
        RequestRefused: the broker refuses them.
        Problem: a text in base64 is none.
    """
    return broker.topics.produce(
        topic,
        records=[_new_record(one) for one in records],
        partition=partition,
        compression=compression,
        transaction=transaction,
        transactional_id=transactional_id,
    )


def _new_record(given: JsonRecord) -> NewRecord:
    headers = [(header.get("name", ""), _given(header, "value")) for header in given.get("headers", ())]
    return NewRecord(
        _given(given, "value"), _given(given, "key"), headers, given.get("timestamp_ms"), given.get("partition")
    )


def _given(fields: Mapping[str, Any], name: str) -> Text:
    if name + BASE64 not in fields:
        text: str | None = fields.get(name)
        return text
    try:
        return base64.b64decode(fields[name + BASE64], validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(f"{name}{BASE64} is bytes in base64, not {fields[name + BASE64]!r:.100}") from None


def records(
    broker: BrokerControls,
    topic: str,
    *,
    partition: int | None = None,
    offset: int = 0,
    limit: int = 100,
    newest: bool = False,
    isolation_level: IsolationLevel = "read_uncommitted",
    control: bool = False,
) -> tuple[TopicRecord, ...]:
    """Return records of a topic by partition and offset, at most ``limit``; with ``newest`` the newest ones.

    Raises:
        RequestRefused: the topic or the partition does not exist.
    """
    found = broker.topics.records(
        topic,
        partition=partition,
        offset=offset,
        limit=limit,
        newest=newest,
        isolation_level=isolation_level,
        control=control,
    )
    return _of_one_response(found[::-1])[::-1] if newest else _of_one_response(found)


def _of_one_response(found: tuple[TopicRecord, ...]) -> tuple[TopicRecord, ...]:
    """Return the first records, up to `RECORDS_MAX_BYTES`, at least one."""
    sizes = itertools.accumulate(len(one.key or b"") + len(one.value or b"") for one in found)
    return found[: max(1, sum(size <= RECORDS_MAX_BYTES for size in sizes))]


def wait_records(
    broker: BrokerControls,
    topic: str,
    *,
    count: int = 1,
    partition: int | None = None,
    offset: int = 0,
    limit: int = 100,
    isolation_level: IsolationLevel = "read_uncommitted",
    timeout_s: float = 30.0,
) -> tuple[TopicRecord, ...]:
    """Wait until a topic has so many records, and return its records by partition and offset, at most ``limit``.

    Raises:
        TimeoutError: it has fewer; the text has the newest one.
    """
    found = broker.topics.wait_records(
        topic, count=count, partition=partition, offset=offset, isolation_level=isolation_level, timeout_s=timeout_s
    )
    return _of_one_response(found[:limit])


def as_json(record: TopicRecord) -> dict[str, Any]:
    """Return a record as JSON values."""
    return (
        record._asdict()
        | _text("key", record.key)
        | _text("value", record.value)
        | {"headers": [dict[str, str | None](name=name) | _text("value", value) for name, value in record.headers]}
    )


def _text(name: str, value: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if value is None else value.decode()}
    except UnicodeDecodeError:
        assert value is not None, "decoded"
        return {name: None, name + BASE64: base64.b64encode(value).decode()}


_NULLABLE_STRING: Schema = {"type": ["string", "null"]}
_RECORD = an_object(
    {
        **dict.fromkeys(("partition", "offset", "timestamp_ms", "producer_id", "producer_epoch"), INTEGER),
        **dict.fromkeys(("key", "value", "control"), _NULLABLE_STRING),
        "headers": a_list(an_object({"name": STRING, "value": _NULLABLE_STRING}, value_base64=STRING)),
        "compression": STRING,
        "is_transactional": {"type": "boolean"},
    },
    key_base64=STRING,
    value_base64=STRING,
)
RECORDS = Result(
    "records; a key or value that is not UTF-8 is in base64",
    an_object({"records": a_list(_RECORD)}),
    lambda found: {"records": [as_json(one) for one in found]},
)
PRODUCED = Result(
    "where the records are, in the order of the request",
    an_object({"records": a_list(an_object({"partition": INTEGER, "offset": INTEGER}))}),
    lambda found: {"records": [one._asdict() for one in found]},
    status=201,
)
