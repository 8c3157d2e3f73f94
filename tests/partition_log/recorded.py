"""Replay of requests about records: kproto against the responses of real brokers (fixtures/golden/records).

Topic ids, session ids and the time come from the recording. All times of a broker's own clock count as equal.
"""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto import registry
from kproto.declaration import Struct
from kproto.errors import DecodeError
from kproto.headers import read_request_header, read_response
from kproto.records.batches import read_batches
from kproto.records.record_batch import RecordBatch
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo
from tests.coordinator.broker_state import new_state
from tests.fixture_files import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto_server.state import BrokerState

RECORDED = FIXTURES / "golden" / "records"
FETCH, PRODUCE, INIT_PRODUCER_ID = 1, 0, 22
UNVERIFIED = {"transaction.partition.verification.enable": "false"}
"""The setting of the brokers whose transactions have no coordinator."""
INTERNAL = ("__consumer_offsets", "__transaction_state")
BOUNDS = re.compile(r"\[-?\d{13,}, -?\d{13,}\]|acceptable time range .*")
"""Of timestamps, by the broker's clock."""
NEAR_MS = 60_000
"""A time this near to the recording's is one of its broker's clock."""


class Row(NamedTuple):
    """A request and its response."""

    api_key: int
    api_version: int
    note: str
    now_ms: int
    request: bytes
    response: bytes | None
    waited: bool | None
    closes: bool
    """Of a request without response: whether the connection was closed."""


class MadeTopic(NamedTuple):
    """A topic that was made at this point."""

    name: str
    topic_id: bytes
    partitions: int
    configs: dict[str, str]


def recorded(release: str) -> Iterator[Row | MadeTopic]:
    """Yield a recording in its order."""
    for line in gzip.decompress((RECORDED / f"{release}.jsonl.gz").read_bytes()).splitlines():
        row: dict[str, Any] = json.loads(line)
        if "topic" in row:
            yield MadeTopic(row["topic"], bytes.fromhex(row["id"]), row["partitions"], row["configs"])
            continue
        response_hex = row["response_hex"]
        yield Row(
            row["api_key"],
            row["api_version"],
            row["note"],
            row["now_ms"],
            bytes.fromhex(row["request_hex"]),
            None if response_hex is None else bytes.fromhex(response_hex),
            row.get("waited"),
            row.get("closes", False),
        )


class Difference(NamedTuple):
    """A row to which kproto responds otherwise."""

    row: Row
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        row = self.row
        return f"API {row.api_key} v{row.api_version} {row.note}:\n  ours   {self.ours}\n  theirs {self.theirs}"


class Replay:
    """A kproto broker that receives the requests of a recording."""

    def __init__(self, recording: str, release: str | None = None, settings: Mapping[str, str] = UNVERIFIED) -> None:
        """``release``: of the recording, if that is not its name."""
        release = release or recording
        settings = {
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            **settings,
        }
        self.state = new_state(release, topics={"only": 1}, settings=settings, with_offsets_topic=False)
        self.state.cluster.delete_topic("only")
        self._recording = recording
        self._dispatcher = Dispatcher(self.state, Observations())
        self._sessions: dict[int, int] = {}
        """Session ids of the recording, and ours in their places."""

    def differences(self) -> Iterator[Difference]:
        for row in recorded(self._recording):
            if isinstance(row, MadeTopic):
                make_topic(self.state, row)
            else:
                yield from self._asked(row)

    def _give_id(self, row: Row) -> None:
        """Make the producer id of a recorded response the next one."""
        assert row.response is not None
        response: Any = read_response(row.response, INIT_PRODUCER_ID, row.api_version)[1]
        if not response.error_code:
            self.state.cluster.last_producer_id = response.producer_id - 1

    def _asked(self, row: Row) -> Iterator[Difference]:
        if row.api_key == INIT_PRODUCER_ID:
            self._give_id(row)
        connection = Connection(self._dispatcher, self.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
        frame = self._with_our_session(row)
        response = connection.receive(len(frame).to_bytes(4, "big") + frame, row.now_ms)
        waited = connection.delayed is not None
        if waited:
            response = connection.resume(row.now_ms)
        if row.response is None:
            ours, theirs = (
                (bool(response), connection.close_reason is not None),
                (False, row.closes or not _needs_none(row)),
            )
            if ours != theirs:
                yield Difference(
                    row, f"closed: {connection.close_reason}, response {response!r}", f"(responded, closed) {theirs}"
                )
            return
        if not response:
            yield Difference(row, f"closed: {connection.close_reason}", _plain(row, row.response))
            return
        parts = self._different_parts(row, response[4:], row.response)
        if parts is not None:
            yield Difference(row, *parts)
        elif row.waited not in (None, waited):
            yield Difference(row, f"waited: {waited}", f"waited: {row.waited}")

    def _different_parts(self, row: Row, ours: bytes, theirs: bytes) -> tuple[Any, Any] | None:
        """Return what differs between two responses; None: nothing. Most are equal, and are not decoded."""
        if ours == theirs and row.api_key != FETCH:
            return None
        frames = ours, theirs
        values: list[Any] = [read_response(frame, row.api_key, row.api_version)[1] for frame in frames]
        self._note_session(row, *values)
        if values[0] == values[1]:
            return None
        plain = [_comparable(value, row.now_ms) for value in values]
        return None if plain[0] == plain[1] else _parts(*plain)

    def _with_our_session(self, row: Row) -> bytes:
        if row.api_key != FETCH or row.api_version < 7:
            return row.request
        header = read_request_header(row.request)
        codec = registry.codec(FETCH, row.api_version)
        request: Any = codec.decode_request(row.request, header.body_position)[0]
        ours = self._sessions.get(request.session_id, request.session_id)
        if ours == request.session_id:
            return row.request
        with_ours: bytes = request.replace(session_id=ours).encode(row.api_version)
        return row.request[: header.body_position] + with_ours

    def _note_session(self, row: Row, ours: Any, theirs: Any) -> None:
        if row.api_key == FETCH and row.api_version >= 7 and ours.session_id and theirs.session_id:
            self._sessions[theirs.session_id] = ours.session_id


def _needs_none(row: Row) -> bool:
    """Return whether the request has no response: Produce with acks=0."""
    if row.api_key != PRODUCE:
        return False
    header = read_request_header(row.request)
    request = registry.codec(PRODUCE, row.api_version).decode_request(row.request, header.body_position)[0]
    return bool(request.acks == 0)


def make_topic(state: BrokerState, made: MadeTopic) -> None:
    cluster = state.cluster
    if made.name in INTERNAL:
        assert cluster.ensure_internal_topic(made.name, 0)
    else:
        cluster.create_topic(
            made.name, partition_count=made.partitions, replication_factor=1, configs=dict(made.configs)
        )
    topic = cluster.topics[made.name]
    if any(made.topic_id):
        del cluster._topics_by_id[topic.topic_id]
        topic.topic_id = made.topic_id
        cluster._topics_by_id[made.topic_id] = topic


def _plain(row: Row, frame: bytes) -> Any:
    return _comparable(read_response(frame, row.api_key, row.api_version)[1], row.now_ms)


def _comparable(value: Any, now_ms: int, name: str = "") -> Any:
    if isinstance(value, Struct):
        fields = value._fields  # type: ignore[attr-defined]
        return {
            field: _comparable(getattr(value, field), now_ms, field)
            for field in fields
            if field not in ("unknown_tagged_fields", "session_id", "log_dir")
        } | {"has_session": bool(getattr(value, "session_id", 0))}
    if name == "records":
        return [_batch(batch, now_ms) for batch in read_batches(value or b"")] if value is not None else None
    if isinstance(value, tuple):
        compared = [_comparable(item, now_ms) for item in value]
        return compared if name == "aborted_transactions" else sorted(compared, key=repr)
    if isinstance(value, str):
        return BOUNDS.sub("[bounds]", value)
    return "now" if type(value) is int and abs(value - now_ms) < NEAR_MS and "time" in name else value


def _batch(batch: Any, now_ms: int) -> Any:
    try:
        found = batch.records()
    except DecodeError as error:
        return str(error), batch.last_offset
    if batch.has_append_time:  # the broker's clock has given it
        found = [record._replace(timestamp=-7) for record in found]
    returned = (batch.magic, batch.compression.name, batch.has_append_time, batch.last_offset, found)
    if isinstance(batch, RecordBatch):
        header = batch.header
        producer = header.producer_id, header.producer_epoch, header.base_sequence
        greatest: object = "append time" if batch.has_append_time else header.max_timestamp
        if batch.is_control and abs(header.max_timestamp - now_ms) < NEAR_MS:
            returned = (*returned[:-1], [record._replace(timestamp=-7) for record in found])
            greatest = "now"
        kind = batch.is_transactional, batch.is_control
        return (*returned, header.base_offset, header.partition_leader_epoch, greatest, producer, kind)
    return returned


def _parts(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Return only the differences of two responses, as far as possible."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = [key for key in ours if ours[key] != theirs.get(key)]
        pairs = {key: _parts(ours[key], theirs.get(key)) for key in keys}
        return {k: v[0] for k, v in pairs.items()}, {k: v[1] for k, v in pairs.items()}
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs_of = [_parts(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
        return [a for a, _ in pairs_of], [b for _, b in pairs_of]
    return ours, theirs


__all__ = ["Difference", "MadeTopic", "Replay", "Row", "recorded"]
