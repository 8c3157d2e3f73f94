"""The recorder of requests about records, and of the responses of a real broker (fixtures/golden/records).

`python -m tests.partition_log.conversation HOST:PORT RELEASE OUT.jsonl [PART]` records a broker that is new and alone.
``PART``: a recording of its own, ``contents`` of batches with wrong contents, ``transactions`` of transactional batches
and markers, ``coordinated`` of producers with a coordinator, ``limits`` of timestamp types and of batches larger than a
segment. Requests are built by our codec; what is wrong with some
is made by hand. The fast tests put the same bytes to our broker.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kproto.headers import read_response, request_frame
from kproto.message import Request
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from tests.waiting import wait_until

READ_LIMIT_S = 5.0
TRANSACTION = 1
"""The key type of FindCoordinator for transactional ids."""


class Talk:
    """A broker, and the requests that it received with their responses."""

    def __init__(self, address: str) -> None:
        self._address = address.rsplit(":", 1)
        self._socket = self._connected()
        self.rows: list[dict[str, Any]] = []
        self.topic_ids: dict[str, bytes] = {}
        response = self._ask(ApiVersionsRequest(), 0)
        self.versions = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
        if self.versions[1][0] >= 4:  # brokers of 4.x say that they serve Produce from 0 on, and do not (BA-25)
            self.versions[0] = (3, self.versions[0][1])

    def _connected(self) -> socket.socket:
        host, port = self._address
        made = socket.create_connection((host, int(port)))
        made.settimeout(READ_LIMIT_S)
        return made

    def serves(self, api_key: int, version: int) -> bool:
        low, high = self.versions.get(api_key, (0, -1))
        return bool(low <= version <= high)

    def every(self, api_key: int, least: int = 0) -> Iterable[int]:
        low, high = self.versions.get(api_key, (0, -1))
        return range(max(low, least), high + 1)

    def ask(
        self, note: str, request: Request, version: int, *, client_id: str = "oracle", has_response: bool = True
    ) -> Any:
        """Send and record a request; return its response, or None if there is none.

        ``has_response``: whether the broker responds; if not, a further request tests whether the connection is open.
        """
        key = type(request)._api_key
        if not self.serves(key, version):
            return None
        now_ms = int(time.time() * 1000)
        frame = request_frame(request, version, correlation_id=len(self.rows) + 1, client_id=client_id)
        began = time.monotonic()
        response = None
        if has_response:
            response = self._exchange(frame)
        else:
            self._sent(frame)
        row = {"api_key": key, "api_version": version, "note": note, "now_ms": now_ms, "request_hex": frame[4:].hex()}
        row["response_hex"] = None if response is None else response.hex()
        if not has_response:
            row["closes"] = not self._lives()
        max_wait_ms = getattr(request, "max_wait_ms", 0)
        if key == 1 and max_wait_ms:
            row["waited"] = (time.monotonic() - began) * 1000 >= max_wait_ms
        self.rows.append(row)
        return None if response is None else read_response(response, key, version)[1]

    def _sent(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def _lives(self) -> bool:
        question = request_frame(ApiVersionsRequest(), 0, correlation_id=1, client_id="")
        return self._exchange(question) is not None

    def _exchange(self, frame: bytes) -> bytes | None:
        try:
            self._sent(frame)
            size = int.from_bytes(self._read(4), "big")
            return self._read(size)
        except (ConnectionError, EOFError, TimeoutError):
            self._socket.close()
            self._socket = self._connected()
            return None

    def _read(self, size: int) -> bytes:
        read = b""
        while len(read) < size:
            more = self._socket.recv(size - len(read))
            if not more:
                raise EOFError
            read += more
        return read

    def _ask(self, request: Request, version: int) -> Any:
        frame = request_frame(request, version, correlation_id=0, client_id="oracle")
        response = self._exchange(frame)
        assert response is not None
        return read_response(response, type(request)._api_key, version)[1]

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Make a topic and wait until the broker has it; recorded as a row of its own kind."""
        given = {name.replace("_", "."): value for name, value in configs.items()}
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in given.items()),
        )
        version = 2
        response = self._ask(CreateTopicsRequest(topics=(topic,), timeout_ms=5000, validate_only=False), version)
        assert response.topics[0].error_code == 0, response
        wait_until(lambda: len(self._metadata(name).partitions) == partitions and self._leads(name, partitions), name)
        self._note_topic(name, partitions, given)

    def delete(self, name: str) -> None:
        response = self._ask(DeleteTopicsRequest(topic_names=(name,), timeout_ms=5000), 1)
        assert response.responses[0].error_code == 0, response

    def commit(self, group_id: str, topic: str, offset: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
        response = self._ask(OffsetCommitRequest(group_id=group_id, topics=topics), min(5, self.versions[8][1]))
        assert response.topics[0].partitions[0].error_code == 0, response

    def _leads(self, topic: str, partitions: int) -> bool:
        """Whether the broker knows that it leads all of them: a little later than that they exist."""
        asked = tuple(ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(partitions))
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=asked),))
        response = self._ask(request, 1)
        return not any(returned.error_code for returned in response.topics[0].partitions)

    def gets_producer_ids(self) -> None:
        """Wait until the broker has ids to give: it asks for some when it is first asked (BA-100)."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        wait_until(lambda: not self._ask(request, 0).error_code, "a producer id")

    def has_offsets_topic(self) -> None:
        """Have the broker make `__consumer_offsets`."""
        wait_until(lambda: not self._ask(FindCoordinatorRequest(key="g"), 0).error_code, "the offsets topic")
        self._note_topic("__consumer_offsets", 0, {})

    def has_transaction_topic(self) -> None:
        """Have the broker make `__transaction_state`."""
        request = FindCoordinatorRequest(key="id", key_type=TRANSACTION)
        wait_until(lambda: not self._ask(request, 1).error_code, "the topic of transactions")
        self._note_topic("__transaction_state", 0, {})

    def end_offset(self, topic: str, partition: int) -> int:
        """Return the high watermark, unrecorded."""
        asked = (ListOffsetsPartition(partition_index=partition, timestamp=-1),)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=asked),))
        return int(self._ask(request, 1).topics[0].partitions[0].offset)

    def _metadata(self, topic: str) -> Any:
        """Return the broker's metadata of a topic, without creating the topic."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
        return self._ask(request, min(12, self.versions[3][1])).topics[0]

    def _note_topic(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        topic_id = self.topic_ids[name] = self._metadata(name).topic_id
        self.rows.append({"topic": name, "id": topic_id.hex(), "partitions": partitions, "configs": configs})


Chapter = Callable[[Talk], None]


def main(address: str, release: str, out: str, part: str = "") -> None:
    from tests.partition_log import (
        conversation_chapters,
        conversation_contents,
        conversation_coordinated,
        conversation_limits,
        conversation_mistakes,
        conversation_transactions,
    )

    talk = Talk(address)
    parts = {
        "": (*conversation_chapters.CHAPTERS, *conversation_mistakes.CHAPTERS),
        "contents": conversation_contents.CHAPTERS,
        "transactions": conversation_transactions.CHAPTERS,
        "coordinated": conversation_coordinated.CHAPTERS,
        "limits": conversation_limits.CHAPTERS,
    }
    for chapter in parts[part]:
        chapter(talk)
    Path(out).write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in talk.rows))
    print(f"{release}: {len(talk.rows)} rows")


if __name__ == "__main__":
    main(*sys.argv[1:])
