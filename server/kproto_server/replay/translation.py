"""Replace the ids that a broker gave to the captured client by those that another broker gives to its replay.

A request of the capture names members, generations, producers, fetch sessions and topics as the captured broker named
them. `learn` compares its responses with those of the other broker; `translated` changes requests accordingly. Ids of
members, topics and producers are the same on all connections, fetch sessions belong to one. A generation belongs to its
member: a client connects again with it, and a producer that commits offsets sends it on a connection of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto import registry
from kproto.declaration import Struct, fields_of
from kproto.headers import request_frame
from kproto.records.checksum import crc32c

if TYPE_CHECKING:
    from kproto.headers import ReceivedHeader
    from kproto.message import Response

KINDS = {
    "member_id": "member",
    "leader": "member",
    "topic_id": "topic",
    "generation_id": "generation",
    "generation_id_or_member_epoch": "generation",
    "member_epoch": "generation",
    "session_id": "session",
}
"""Field of a request or a response -> kind of its id."""
FIELDS_OF_RESPONSE = frozenset({*KINDS} - {"generation_id_or_member_epoch"})
"""The fields of a response itself that have a new id."""
PRODUCERS = (("producer_id", "producer_epoch"), ("v3_and_below_producer_id", "v3_and_below_producer_epoch"))
"""The fields of a producer's id and epoch."""
NO_IDS = ("", 0, -1, None)
"""Values of `KINDS` that name nothing."""
NOT_CHECKED = {"current_leader_epoch": -1}
"""Fields whose value another cluster refuses, and the value with which a broker does not check them."""
RECORDS = "records"
MAGIC, CRC, ATTRIBUTES, PRODUCER_ID, PRODUCER_EPOCH, BATCH_HEADER = 16, 17, 21, 43, 51, 61
"""Positions in a record batch; the checksum is of all from the attributes on."""
LENGTH_POSITION, LENGTH_END = 8, 12

Ids = dict[tuple[str, Any], Any]
"""Kind and captured id -> id of the replay."""


class Translation:
    """The ids of one replay."""

    def __init__(self) -> None:
        self._all: Ids = {}
        self._producers: dict[tuple[int, int], tuple[int, int]] = {}
        """Id and epoch."""
        self._sessions: dict[int, Ids] = {}
        """By connection."""
        self._generations: dict[tuple[str, int], int] = {}
        """Captured member and generation, or member epoch -> generation of the replay."""
        self._members: dict[int, str] = {}
        """By connection, the captured member of the latest request that names one."""

    def learn(self, connection: int, captured: Response, replayed: Response) -> None:
        """Compare two responses to the same request on a connection."""
        for name in FIELDS_OF_RESPONSE:
            if hasattr(captured, name):
                member = getattr(captured, "member_id", "") or self._members.get(connection, "")
                self._learn(connection, KINDS[name], member, getattr(captured, name), getattr(replayed, name))
        producer_id, epoch = PRODUCERS[0]
        if hasattr(captured, producer_id) and hasattr(captured, epoch):
            found, new = ((getattr(each, producer_id), getattr(each, epoch)) for each in (captured, replayed))
            if -1 not in (found[0], new[0]):
                self._producers[found] = new
        self._learn_topics(captured, replayed)
        if hasattr(captured, "protocol_name"):  # JoinGroup; SyncGroup has no members
            self._learn_members(getattr(captured, "members", ()), getattr(replayed, "members", ()))

    def translated(self, connection: int, frame: bytes, header: ReceivedHeader) -> bytes:
        """Return a request of the capture, with its size, as the replay sends it.

        Raises:
            ProtocolError: it does not have its declared layout.
        """
        key, version = header.api_key, header.api_version
        codec = registry.codec(key, version)
        request, end = codec.decode_request(frame, header.body_position)
        if member := getattr(request, "member_id", ""):
            self._members[connection] = member
        changed = self._changed(connection, request)
        if changed is request or end != len(frame):
            return len(frame).to_bytes(4, "big") + frame
        return request_frame(changed, version, correlation_id=header.correlation_id, client_id=header.client_id)

    def _learn(self, connection: int, kind: str, member: str, captured: Any, replayed: Any) -> None:
        if captured in NO_IDS or replayed in NO_IDS:
            return
        if kind == "generation":
            self._generations[member, captured] = replayed
        else:
            self._ids(connection, kind)[kind, captured] = replayed

    def _ids(self, connection: int, kind: str) -> Ids:
        return self._sessions.setdefault(connection, {}) if kind == "session" else self._all

    def _learn_topics(self, captured: Any, replayed: Any) -> None:
        """Learn topic ids by the names beside them."""
        topics = {
            topic.name: topic for topic in getattr(replayed, "topics", None) or () if getattr(topic, "name", None)
        }
        for topic in getattr(captured, "topics", None) or ():
            other = topics.get(getattr(topic, "name", None))
            if other is not None and hasattr(topic, "topic_id") and any(topic.topic_id):
                self._all["topic", topic.topic_id] = other.topic_id

    def _learn_members(self, captured: Any, replayed: Any) -> None:
        """Learn the members that a leader receives: those that are not known yet, in their order."""
        known = set(self._all.values())
        old = [member.member_id for member in captured if ("member", member.member_id) not in self._all]
        new = [member.member_id for member in replayed if member.member_id not in known]
        self._all.update((("member", before), after) for before, after in zip(old, new, strict=False))

    def _changed(self, connection: int, struct: Any) -> Any:
        changes = {}
        for field in fields_of(type(struct)):
            value = getattr(struct, field.name)
            if KINDS.get(field.name) == "generation":
                found = self._generations.get((getattr(struct, "member_id", ""), value), value)
            else:
                found = self._changed_value(connection, field.name, value)
            if found is not value and found != value:
                changes[field.name] = found
        for producer_id, epoch in PRODUCERS:
            if hasattr(struct, producer_id) and hasattr(struct, epoch):
                known = getattr(struct, producer_id), getattr(struct, epoch)
                new = self._producers.get(known, known)
                if new != known:
                    changes |= {producer_id: new[0], epoch: new[1]}
        return struct.replace(**changes) if changes else struct

    def _changed_value(self, connection: int, name: str, value: Any) -> Any:
        if isinstance(value, Struct):
            return self._changed(connection, value)
        if isinstance(value, tuple):
            return tuple(self._changed(connection, each) if isinstance(each, Struct) else each for each in value)
        if name in NOT_CHECKED:
            return NOT_CHECKED[name]
        if name == RECORDS and value:
            return self._changed_batches(bytes(value))
        kind = KINDS.get(name)
        return value if kind is None else self._ids(connection, kind).get((kind, value), value)

    def _changed_batches(self, records: bytes) -> bytes:
        """Return record batches with the producer of the replay; older message formats have none."""
        changed = bytearray(records)
        position = 0
        while position + BATCH_HEADER <= len(changed) and changed[position + MAGIC] == 2:
            end = (
                position
                + LENGTH_END
                + int.from_bytes(changed[position + LENGTH_POSITION : position + LENGTH_END], "big")
            )
            id_end, epoch_end = position + PRODUCER_EPOCH, position + PRODUCER_EPOCH + 2
            known = (
                int.from_bytes(changed[position + PRODUCER_ID : id_end], "big", signed=True),
                int.from_bytes(changed[id_end:epoch_end], "big", signed=True),
            )
            new = self._producers.get(known, known)
            if new != known:
                changed[position + PRODUCER_ID : id_end] = new[0].to_bytes(8, "big")
                changed[id_end:epoch_end] = new[1].to_bytes(2, "big")
                checksum = crc32c(bytes(changed[position + ATTRIBUTES : end]))
                changed[position + CRC : position + ATTRIBUTES] = checksum.to_bytes(4, "big")
            position = max(end, position + BATCH_HEADER)
        return bytes(changed)
