"""Which error a client gets whose rights are revoked while it runs: from kproto, and from a real broker.

`python -m tests.security.revoked_rights` runs the clients against both and records the results in
fixtures/client-errors/revoked-rights.json. Each client works with the rights of its case, an administrator revokes one
of them, and the client goes on: the result is ok, or the class of the error that its library reports.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from kproto.messages import k29_describe_acls as k29
from kproto.messages import k30_create_acls as k30
from kproto.messages import k31_delete_acls as k31
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto_server.security.acls import Operation, PatternType, Permission, ResourceType
from tests.network.raw_client import RawClient
from tests.oracle.cluster import NEWEST, kafka
from tests.oracle.java import compiled, java_command
from tests.security.acl_cases import BATCH
from tests.security.client_errors import (
    ADMIN,
    LOGIN,
    TOPIC,
    Case,
    Endpoints,
    described,
    kproto,
    kproto_as,
    properties,
    real,
)
from tests.security.python_errors import of_librdkafka
from tests.waiting import LIMIT_S, wait_until

RECORDED = Path(__file__).parents[2] / "fixtures" / "client-errors" / "revoked-rights.json"
PRINCIPAL = "User:bob"
BOB = Case(LOGIN, "PLAIN", "bob", "bob-secret")
GROUP, TRANSACTIONAL_ID = "readers", "payments"
SESSION = {"heartbeat.interval.ms": 500, "session.timeout.ms": 6000}


class Right(NamedTuple):
    """What bob may do."""

    resource_type: ResourceType
    name: str
    operation: Operation


WRITE_TOPIC = Right(ResourceType.TOPIC, TOPIC, Operation.WRITE)
READ_TOPIC = Right(ResourceType.TOPIC, TOPIC, Operation.READ)
READ_GROUP = Right(ResourceType.GROUP, GROUP, Operation.READ)
WRITE_TRANSACTIONAL_ID = Right(ResourceType.TRANSACTIONAL_ID, TRANSACTIONAL_ID, Operation.WRITE)


class Revocation(NamedTuple):
    """What a client does, with which rights, and which of them is revoked."""

    action: str
    rights: tuple[Right, ...]
    revoked: Right
    waits_for_the_session: bool = False
    """Whether librdkafka reports the error only when its session has timed out."""


REVOCATIONS = {
    "a producer may not write": Revocation("write", (WRITE_TOPIC,), WRITE_TOPIC),
    "a producer may not use its transactional id": Revocation(
        "transaction", (WRITE_TOPIC, WRITE_TRANSACTIONAL_ID), WRITE_TRANSACTIONAL_ID
    ),
    "a transactional producer may not write": Revocation(
        "transaction", (WRITE_TOPIC, WRITE_TRANSACTIONAL_ID), WRITE_TOPIC
    ),
    "a consumer may not read the topic": Revocation("read", (READ_TOPIC, READ_GROUP), READ_TOPIC),
    "a consumer may not be in its group": Revocation("read", (READ_TOPIC, READ_GROUP), READ_GROUP, True),
    "a consumer that commits may not be in its group": Revocation("commit", (READ_TOPIC, READ_GROUP), READ_GROUP),
}
Results = dict[str, str]
Revoke = Callable[[], None]


class Administrator:
    """Gives bob rights and takes them."""

    def __init__(self, address: str) -> None:
        self._client = RawClient(address)

    def write_a_record(self) -> None:
        data = (TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=0, records=BATCH),)),)
        written = self._client.ask(ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=data), 9)
        assert not written.responses[0].partition_responses[0].error_code, written

    def grant(self, rights: Iterable[Right]) -> None:
        creations = tuple(
            k30.AclCreation(
                resource_type=type_, resource_name=name, principal=PRINCIPAL, host="*", operation=operation,
                permission_type=Permission.ALLOW,
            )
            for type_, name, operation in rights
        )  # fmt: skip
        created = self._client.ask(k30.CreateAclsRequest(creations=creations), 1)
        assert not any(one.error_code for one in created.results), created
        wait_until(lambda: self._rights() == len(creations), "the rights")

    def revoke(self, *rights: Right) -> None:
        """Revoke rights; all if none is named."""
        filters = tuple(_filter(*right) for right in rights) or (_filter(ResourceType.ANY, None, Operation.ANY),)
        left = self._rights() - len(rights) if rights else 0
        deleted = self._client.ask(k31.DeleteAclsRequest(filters=filters), 1)
        assert not any(one.error_code for one in deleted.filter_results), deleted
        wait_until(lambda: self._rights() == left, "the end of the rights")

    def _rights(self) -> int:
        found = self._client.ask(
            k29.DescribeAclsRequest(
                resource_type_filter=ResourceType.ANY, resource_name_filter=None, pattern_type_filter=PatternType.ANY,
                principal_filter=PRINCIPAL, host_filter=None, operation=Operation.ANY, permission_type=Permission.ANY,
            ),
            1,
        )  # fmt: skip
        return sum(len(resource.acls) for resource in found.resources)

    def close(self) -> None:
        self._client.socket.close()


def _filter(resource_type: ResourceType, name: str | None, operation: Operation) -> k31.DeleteAclsFilter:
    """Return a filter that selects ACLs of bob."""
    return k31.DeleteAclsFilter(
        resource_type_filter=resource_type, resource_name_filter=name, pattern_type_filter=PatternType.ANY,
        principal_filter=PRINCIPAL, host_filter=None, operation=operation, permission_type=Permission.ANY,
    )  # fmt: skip


Work = Callable[[str, Revoke], str]
"""Does what an action names, calls the function, goes on, and returns the error."""


@contextmanager
def confluent(endpoints: Endpoints) -> Iterator[Work]:
    import confluent_kafka

    settings = of_librdkafka(described({"bob": BOB}, endpoints)[0])

    def write(revoke: Revoke) -> str:
        producer = confluent_kafka.Producer(settings)

        def written() -> str:
            results: list[Any] = []
            producer.produce(TOPIC, b"v", on_delivery=lambda error, _: results.append(error))
            assert producer.flush(LIMIT_S) == 0, "no result"
            return "ok" if results[0] is None else str(results[0].name())

        assert written() == "ok"
        revoke()
        return written()

    def write_transaction(revoke: Revoke) -> str:
        producer = confluent_kafka.Producer({**settings, "transactional.id": TRANSACTIONAL_ID})
        producer.init_transactions(LIMIT_S)

        def transaction() -> None:
            producer.begin_transaction()
            producer.produce(TOPIC, b"v")
            producer.commit_transaction(LIMIT_S)

        transaction()
        revoke()
        try:
            transaction()
        except confluent_kafka.KafkaException as error:
            return str(error.args[0].name())
        return "ok"

    def read(revoke: Revoke, *, commits: bool) -> str:
        own = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False, **SESSION}
        consumer = confluent_kafka.Consumer({**settings, **own})
        consumer.subscribe([TOPIC])

        def next_message() -> Any:
            deadline = time.monotonic() + LIMIT_S
            while time.monotonic() < deadline:
                if (message := consumer.poll(0.1)) is not None:
                    return message
            raise AssertionError("neither a record nor an error")

        try:
            message = next_message()
            assert message.error() is None, message.error()
            consumer.commit(message=message, asynchronous=False)
            revoke()
            if commits:
                consumer.commit(message=message, asynchronous=False)
            while (message := next_message()).error() is None:
                pass
            return str(message.error().name())
        except confluent_kafka.KafkaException as error:
            return str(error.args[0].name())
        finally:
            consumer.close()

    actions: dict[str, Callable[[Revoke], str]] = {
        "write": write, "transaction": write_transaction, "read": lambda revoke: read(revoke, commits=False),
        "commit": lambda revoke: read(revoke, commits=True),
    }  # fmt: skip
    yield lambda action, revoke: actions[action](revoke)


@contextmanager
def java(endpoints: Endpoints) -> Iterator[Work]:
    jars = kafka("clientpath", NEWEST)
    classes = compiled(Path(__file__).parent / "java" / "RevokedRights.java", jars)
    with tempfile.TemporaryDirectory(prefix="revoked-rights-") as folder:
        file = Path(folder) / "settings"
        file.write_text(properties(BOB, endpoints[LOGIN]))
        command = java_command(classes, jars, "RevokedRights")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            to, read = program.stdin, program.stdout.readline

            def work(action: str, revoke: Revoke) -> str:
                _write_line(to, f"{action} {file}")
                assert read() == "ready\n", "it fails with all of its rights"
                revoke()
                _write_line(to, "")
                return read().strip()

            yield work
            to.close()


def _write_line(program: IO[str], line: str) -> None:
    program.write(f"{line}\n")
    program.flush()


CLIENTS = {"confluent-kafka": confluent, f"java-{NEWEST}": java}


def run(client: str, endpoints: Endpoints, cases: Mapping[str, Revocation] = REVOCATIONS) -> Results:
    """Return the result of each case."""
    found = {}
    administrator = Administrator(endpoints[ADMIN].servers)
    with CLIENTS[client](endpoints) as work:
        for name, case in cases.items():
            administrator.write_a_record()  # the group of an earlier case has committed all before it
            administrator.grant(case.rights)
            found[name] = work(case.action, lambda revoked=case.revoked: administrator.revoke(revoked))  # type: ignore[misc]
            administrator.revoke()
    administrator.close()
    return found


def main() -> None:
    recorded: dict[str, dict[str, Results]] = {name: {} for name in CLIENTS}
    for broker, endpoints_of in ((NEWEST, real), (kproto_as(NEWEST), kproto)):
        with endpoints_of(NEWEST) as endpoints:
            for client in CLIENTS:
                recorded[client][broker] = run(client, endpoints)
                print(f"{client} with {broker}: {json.dumps(recorded[client][broker], indent=1)}", flush=True)
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
