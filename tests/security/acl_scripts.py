"""Sends the requests of `CASES` as a user with some rights, and returns the responses for comparison.

The same code asks a real broker and kproto. A `Client` sends one request and returns its response; `admin` is a super
user and `user` is ``User:alice``, who has the rights that the ACLs of the moment give.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from kproto import registry
from kproto.declaration import Field, Struct, fields_of
from kproto.messages.k03_metadata import MetadataRequest
from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k19_create_topics import CreateTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k29_describe_acls import DescribeAclsRequest
from kproto.messages.k30_create_acls import CreateAclsRequest
from kproto.messages.k31_delete_acls import DeleteAclsRequest
from kproto_server.handlers._error_responses import filled
from kproto_server.releases.kafka_version import KafkaVersion
from tests.security.acl_cases import CASES, OWN, Case
from tests.waiting import LIMIT_S

USER = "User:alice"
RESOURCES = {"topic": 2, "group": 3, "cluster": 4, "transactional_id": 5}
OPERATIONS = ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
              "ALTER_CONFIGS", "IDEMPOTENT_WRITE")  # fmt: skip
ALLOW, LITERAL, ANY = 3, 3, 1
CLOSED = "closed"
UNKNOWN_ID = bytes(15) + b"\7"
VOLATILE = {"cluster_id", "port", "member_id", "log_dir", "log_dir_size", "node_id", "broker_id",
            "controller_id", "log_append_time_ms", "leader_epoch", "acquisition_lock_timeout_ms", "partition_size",
            "heartbeat_interval_ms", "producer_id",
            "low_watermark"}  # fmt: skip
"""Fields whose values depend on the broker, not on rights."""
NOT_COMPARED = {"throttle_time_ms", "total_bytes", "usable_bytes"}
FINGERPRINT = re.compile(r"^Request .*", re.DOTALL)


def read_recording(path: Path) -> dict[str, dict[str, Any]]:
    """Return the responses of a file by case and variant."""
    content = json.loads(path.read_text())
    distinct = content["responses"]
    return {
        name: {variant: distinct[number] for variant, number in variants.items()}
        for name, variants in content["cases"].items()
    }


def write_recording(path: Path, found: dict[str, dict[str, Any]]) -> None:
    """Write responses; equal ones stand in the file once."""
    numbers: dict[str, int] = {}
    cases = {
        name: {
            variant: numbers.setdefault(json.dumps(response, separators=(",", ":")), len(numbers))
            for variant, response in variants.items()
        }
        for name, variants in found.items()
    }
    lines = ",\n".join(numbers)
    path.write_text(f'{{"cases": {json.dumps(cases, indent=1)},\n"responses": [\n{lines}\n]}}\n')


class Client(Protocol):
    """One connection."""

    def ask(self, request: Any, version: int) -> Any:
        """Return the response; None: the connection was closed instead."""


def made(cls: type[Any], values: dict[str, Any], version: int, resolve: Callable[[str], bytes]) -> Any:
    """Return a struct with these values, and with empty ones for its other fields in a version."""
    given = {}
    for field in fields_of(cls):
        if field.name in values and field.versions.covers(version):
            given[field.name] = _value(field, values[field.name], version, resolve)
    return filled(cls, given, version)


def _value(field: Field, value: Any, version: int, resolve: Callable[[str], bytes]) -> Any:
    if isinstance(value, str) and value.startswith("@"):
        return resolve(value)
    struct = field.type.struct or (field.type.element.struct if field.type.element else None)
    if isinstance(value, dict):
        assert struct is not None
        return made(struct, value, version, resolve)
    if isinstance(value, list):
        return tuple(made(struct, one, version, resolve) if struct else one for one in value)
    return value


def plain(value: Any, names: dict[bytes, str], field: str = "") -> Any:
    """Return a response as JSON has it, without what depends on the broker."""
    if isinstance(value, Struct):
        fields = ((f.name, getattr(value, f.name)) for f in fields_of(type(value)))
        return {name: plain(one, names, name) for name, one in fields if name not in NOT_COMPARED}
    if field == "configs":
        return sorted(one.name for one in value or ())
    if isinstance(value, tuple):
        return sorted((plain(one, names, field) for one in value), key=json.dumps)
    if field in VOLATILE or (field == "host" and value == "127.0.0.1"):
        return "some" if value not in (-1, "", None) else value
    if isinstance(value, bytes):
        return names.get(value, "another id" if field == "topic_id" and any(value) else value.hex())
    if field == "error_message" and value is not None:
        return FINGERPRINT.sub("Request ...", value)
    if field == "records" and value is not None:
        return "records"
    return value


class Script:
    """The state of one recording."""

    def __init__(self, admin: Client, user: Client, release: str, reconnect: Callable[[], Client]) -> None:
        """``reconnect``: returns a new connection of the user, when the broker has closed the last one."""
        self._admin = admin
        self._user = user
        self._reconnect = reconnect
        self._version = KafkaVersion.named(release)
        self._ids = {"absent": UNKNOWN_ID}

    def run(self, names: list[str] | None = None, *, prepares: bool = True) -> dict[str, dict[str, Any]]:
        """Return the responses by case and variant: the version, and the rights that the user lacks."""
        if prepares:
            self._prepare()
        return {name: dict(self._case(CASES[name])) for name in names or CASES if self._serves(CASES[name])}

    def _serves(self, case: Case) -> bool:
        low, high = self._version.api_versions.get(case.api_key, (1, 0))
        return max(low, case.oldest) <= min(high, case.newest)

    def _versions(self, case: Case) -> list[int]:
        low, high = self._version.api_versions[case.api_key]
        return sorted({max(low, case.oldest), min(high, case.newest)})

    def _case(self, case: Case) -> Iterator[tuple[str, Any]]:
        for version in self._versions(case):
            for missing in self._missing(case):
                given = [right for right in case.rights if right not in missing]
                self.grant(given)
                request = made(registry.request_class(case.api_key), case.request, version, self._resolve)
                response = self._user.ask(request, version)
                if response is None:
                    self._user = self._reconnect()
                names = {value: f"id of {name}" for name, value in self._ids.items() if any(value)}
                yield (
                    f"v{version} without {', '.join(missing) or 'nothing'}",
                    (CLOSED if response is None else plain(response, names)),
                )
                self.revoke(len(given))

    def _missing(self, case: Case) -> list[tuple[str, ...]]:
        all_rights, single = case.rights, [(right,) for right in case.rights]
        sets: list[tuple[str, ...]] = [*([()] if case.has_all else []), *single]
        return sets if len(all_rights) <= 1 else [*sets, all_rights]

    def _resolve(self, name: str) -> bytes:
        return self._ids[name[1:]]

    def _ask_admin(self, cls: type[Any], values: dict[str, Any], newest: int = 1) -> Any:
        low, high = self._version.api_versions[cls._api_key]
        version = max(low, min(high, newest))
        return self._admin.ask(made(cls, values, version, self._resolve), version)

    def grant(self, rights: list[str]) -> None:
        """Give rights to the user."""
        if not rights:
            return
        creations = []
        for right in rights:
            kind, name, operation = right.split(":")
            creations.append(
                {"resource_type": RESOURCES[kind], "resource_name": name, "resource_pattern_type": LITERAL,
                 "principal": USER, "host": "*", "operation": OPERATIONS.index(operation) + 3, "permission_type": ALLOW}
            )  # fmt: skip
        response = self._ask_admin(CreateAclsRequest, {"creations": creations})
        assert not any(one.error_code for one in response.results), response
        self._await_acls(len(set(rights)))

    def revoke(self, count: int) -> None:
        """Take all rights of the user."""
        if count:
            self._ask_admin(DeleteAclsRequest, {"filters": [self._filter()]})
            self._await_acls(0)

    def _filter(self) -> dict[str, Any]:
        return {"resource_type_filter": ANY, "resource_name_filter": None, "pattern_type_filter": ANY,
                "principal_filter": USER, "host_filter": None, "operation": ANY, "permission_type": ANY}  # fmt: skip

    def _await_acls(self, count: int) -> None:
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            response = self._ask_admin(DescribeAclsRequest, self._filter())
            if sum(len(resource.acls) for resource in response.resources) == count:
                return
        raise AssertionError("the ACLs have not arrived")

    def _prepare(self) -> None:
        """Have topics, a group with offsets, and a transactional id."""
        topic = {"num_partitions": 2, "replication_factor": 1, "assignments": [], "configs": []}
        self._ask_admin(
            CreateTopicsRequest,
            {"topics": [{"name": name, **topic} for name in ("orders", "secret")], "timeout_ms": 10_000},
        )
        self._await(lambda: self._find("billing", 0))
        partition = {"committed_offset": 3, "committed_leader_epoch": -1, "committed_metadata": ""}
        commit = {
            "group_id": "billing", "generation_id_or_member_epoch": -1, "member_id": "", "retention_time_ms": -1,
            "topics": [{"name": name, "partitions": [{**partition, "partition_index": 0}]}
                       for name in ("orders", "secret")],
        }  # fmt: skip
        self._await(
            lambda: (
                not any(
                    one.error_code
                    for topic in self._ask_admin(OffsetCommitRequest, commit, 2).topics
                    for one in topic.partitions
                )
            )
        )
        self._await(lambda: self._find(OWN, 1))
        init = {"transactional_id": OWN, "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1}
        self._await(lambda: not self._ask_admin(InitProducerIdRequest, init).error_code)
        metadata = self._ask_admin(
            MetadataRequest,
            {"topics": [{"name": "orders"}, {"name": "secret"}], "allow_auto_topic_creation": False},
            99,
        )
        self._ids.update({one.name: one.topic_id for one in metadata.topics})

    def _find(self, key: str, key_type: int) -> bool:
        return not self._ask_admin(FindCoordinatorRequest, {"key": key, "key_type": key_type}).error_code

    @staticmethod
    def _await(is_done: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT_S
        while not is_done():
            assert time.monotonic() < end
