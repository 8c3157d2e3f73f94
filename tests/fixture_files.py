"""Typed readers of the files under `fixtures/`. All tests read these files through this module.

`definitions("4.4.0")` returns Kafka's message definitions, `golden("OffsetCommit")` recorded requests with the
responses of real brokers, `conversations()` the frames of real clients, `api_versions()` and `error_codes()` Kafka's
tables. The `PROVENANCE.md` of each folder names the source of its files.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
GOLDEN = FIXTURES / "golden"

RELEASES = ("4.4.0", "3.9.2")
"""The releases with message definitions, newest first. Only the older one has the versions that 4.0 removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDefinition:
    """One row of Kafka's error table."""

    code: int
    name: str
    retriable: bool
    message: str


@cache
def error_codes() -> Mapping[str, ErrorDefinition]:
    """Return Kafka's error table by name."""
    rows: list[dict[str, Any]] = json.loads((FIXTURES / "kafka-error-codes.json").read_text())
    return {row["name"]: ErrorDefinition(**row) for row in rows}


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends included; empty if `low` is above `high`."""

    low: int
    high: int

    NEWEST = 2**15 - 1

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """Read "3", "2-4", "7+" or "none"."""
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), cls.NEWEST)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))


NO_VERSION = Versions.parse("none")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDefinition:
    """One field of a message, as Kafka's definition states it."""

    name: str
    type: str
    """"int32", "string", "bytes", "records", "uuid", the name of a struct ...; "[]X" is an array of X."""
    versions: Versions
    nullable_versions: Versions
    tagged_versions: Versions
    tag: int | None
    flexible_versions: Versions | None
    """Overrides the message's own range if it is not None. Only RequestHeader's ClientId has it."""
    has_default: bool
    default: Any
    """A value of the field's type. None: no default, or a default of null (see `has_default`)."""
    ignorable: bool
    fields: tuple["FieldDefinition", ...]
    """The fields of the struct that `type` names, common structs resolved; empty for primitive types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A message of one Kafka release."""

    name: str
    kind: str
    """"request", "response", "header", "data", "coordinator-key" or "coordinator-value"."""
    api_key: int | None
    """The API key; for a coordinator's key or value its record type (absent for most in 3.9.2)."""
    listeners: tuple[str, ...]
    """For a request: "broker", "controller" and (in 3.9.2) "zkBroker"."""
    valid_versions: Versions
    flexible_versions: Versions
    newest_is_unstable: bool
    """Whether brokers do not advertise the newest version by default."""
    fields: tuple[FieldDefinition, ...]


def _fields(rows: list[dict[str, Any]], structs: Mapping[str, list[dict[str, Any]]]) -> tuple[FieldDefinition, ...]:
    return tuple(_field(row, structs) for row in rows)


def _field(row: dict[str, Any], structs: Mapping[str, list[dict[str, Any]]]) -> FieldDefinition:
    inner = row.get("fields") or structs.get(row["type"].removeprefix("[]"), [])
    return FieldDefinition(
        name=row["name"],
        type=row["type"],
        versions=Versions.parse(row["versions"]),
        nullable_versions=Versions.parse(row.get("nullableVersions", "none")),
        tagged_versions=Versions.parse(row.get("taggedVersions", "none")),
        tag=row.get("tag"),
        flexible_versions=Versions.parse(row["flexibleVersions"]) if "flexibleVersions" in row else None,
        has_default="default" in row,
        default=row.get("default"),
        ignorable=row.get("ignorable", False),
        fields=_fields(inner, structs),
    )


@cache
def definitions(release: str) -> Mapping[str, Definition]:
    """Return the message definitions of one of `RELEASES` by name ("OffsetCommitRequest")."""
    found = {}
    for path in sorted((FIXTURES / "kafka-definitions" / release).glob("*.json")):
        row = json.loads(path.read_text())
        structs = {struct["name"]: struct["fields"] for struct in row.get("commonStructs", [])}
        found[row["name"]] = Definition(
            name=row["name"],
            kind=row["type"],
            api_key=row.get("apiKey"),
            listeners=tuple(row.get("listeners", ())),
            valid_versions=Versions.parse(row["validVersions"]),
            flexible_versions=Versions.parse(row.get("flexibleVersions", "none")),
            newest_is_unstable=row.get("latestVersionUnstable", False),
            fields=_fields(row["fields"], structs),
        )
    return found


@cache
def definition(name: str, version: int) -> Definition:
    """Return the newest definition of a message that has this version.

    Raises:
        KeyError: no release has this version.
    """
    for release in RELEASES:
        found = definitions(release).get(name)
        if found and version in found.valid_versions:
            return found
    raise KeyError(f"{name} v{version}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenPair:
    """A request and the response of real brokers, byte for byte, both without the 4-byte size."""

    api: str
    api_key: int
    api_version: int
    brokers: Mapping[str, int]
    """The releases with this response; for each, the index of this pair in its recording, in the order of sending.
    The bytes are those of the first release; the others differ in correlation id and generated member ids only."""
    note: str
    """The situation, in words."""
    request: bytes
    response: bytes | None
    """None: the broker closed the connection, or did not respond (the note says which)."""
    request_values: Mapping[str, Any] | None
    """The values of the request by Kafka's field names; None for frames made by hand and for long ones."""
    response_values: Mapping[str, Any] | None
    """The values that an independent decoder read from the response; None for long ones too."""
    waited: bool | None = None
    """For a Fetch in `golden_topics`: whether the broker responded only after max_wait."""


@cache
def golden(api: str) -> tuple[GoldenPair, ...]:
    """Return all recorded pairs of an API by its name ("OffsetCommit")."""
    lines = (GOLDEN / "frames" / f"{api}.jsonl").read_text().splitlines()
    return tuple(_golden_pair(api, json.loads(line)) for line in lines)


@cache
def golden_releases(api: str) -> tuple[GoldenPair, ...]:
    """Return the pairs of an API that were recorded with the same requests to a fresh broker of each release and mode.

    A key of `brokers` ends in "-zookeeper" where a release has both modes. Ports, ids and correlation ids are made
    equal.
    """
    lines = (GOLDEN / "releases" / f"{api}.jsonl").read_text().splitlines()
    return tuple(_golden_pair(api, json.loads(line)) for line in lines)


@cache
def golden_topics(recording: str) -> tuple[GoldenPair, ...]:
    """Return one broker's recording on topics in the order of the wire: "2.1.1", "4.4.0", "4.4.0-others" ..."""
    names = api_versions().names
    rows = [json.loads(line) for line in (GOLDEN / "topics" / f"{recording}.jsonl").read_text().splitlines()]
    return tuple(
        _golden_pair(names[row["api_key"]], {**row, "brokers": {recording: index}}) for index, row in enumerate(rows)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStep:
    """One step of a recording of several brokers: a broker stops or starts, or responds to a request."""

    node_id: int
    action: str | None
    """"stop" or "start"; None: the broker received a request."""
    pair: GoldenPair | None


@cache
def golden_cluster(recording: str) -> tuple[ClusterStep, ...]:
    """Return a recording of three brokers, some of which stop and start: "2.8.2-three-brokers" ..."""
    names = api_versions().names
    steps = []
    for index, line in enumerate((GOLDEN / "topics" / f"{recording}.jsonl").read_text().splitlines()):
        row = json.loads(line)
        action = row.get("do")
        pair = None if action else _golden_pair(names[row["api_key"]], {**row, "brokers": {recording: index}})
        steps.append(ClusterStep(node_id=row["node"], action=action, pair=pair))
    return tuple(steps)


def golden_apis() -> tuple[str, ...]:
    """Return the names of the APIs that `golden` has pairs of."""
    return tuple(sorted(path.stem for path in (GOLDEN / "frames").glob("*.jsonl")))


def _golden_pair(api: str, row: dict[str, Any]) -> GoldenPair:
    response = row["response_hex"]
    return GoldenPair(
        api=api,
        api_key=row["api_key"],
        api_version=row["api_version"],
        brokers=row["brokers"],
        note=row["note"],
        request=bytes.fromhex(row["request_hex"]),
        response=None if response is None else bytes.fromhex(response),
        request_values=row.get("request"),
        response_values=row.get("response"),
        waited=row.get("waited"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFrame:
    """One frame of a client's conversation with a 4.4.0 broker."""

    connection: int
    is_request: bool
    api_key: int
    api_version: int
    """A response has the API key and the version of its request."""
    correlation_id: int
    frame: bytes


@cache
def conversations() -> Mapping[str, tuple[ConversationFrame, ...]]:
    """Return all frames of real clients' conversations in the order of the wire, by recording ("4.4.0-aiokafka")."""
    return {path.stem: tuple(_frames_of(path)) for path in sorted((GOLDEN / "clients").glob("*.jsonl"))}


def _frames_of(path: Path) -> Iterator[ConversationFrame]:
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if "hex" in row:
            yield ConversationFrame(
                connection=row["conn"],
                is_request=row["dir"] == "request",
                api_key=row["key"],
                api_version=row["version"],
                correlation_id=row["correlation"],
                frame=bytes.fromhex(row["hex"]),
            )


def golden_log(release: str) -> Path:
    """Return the log directory that a broker of 2.0.1, 2.1.1 or 4.4.0 wrote, with dumps beside the segments."""
    return GOLDEN / "logs" / release


def offsets_log(situation: str, release: str) -> Path:
    """Return the log directory that a broker wrote in a situation of `tests.spark.record_logs`."""
    return FIXTURES / "offsets-logs" / situation / release


@cache
def expiry_recordings() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return the recorded timelines of offset expiration in real brokers, by release and name of the timeline."""
    paths = sorted((FIXTURES / "expiry").glob("*.json"), key=lambda path: [int(n) for n in path.stem.split(".")])
    return {path.stem: json.loads(path.read_text())["timelines"] for path in paths}


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSurface:
    """The APIs and versions that a broker of one release, in one mode, serves."""

    line: str
    """The release line: "0.8.2", "2.0", "4.4"."""
    mode: str
    """"zookeeper" or "kraft"."""
    broker: str
    """The release of the broker that responded."""
    has_api_versions: bool
    apis: Mapping[int, tuple[int, int]]
    """API key -> lowest and highest version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsTable:
    """The content of `fixtures/kafka-api-versions.json`."""

    internal: frozenset[int]
    """The API keys that only brokers and controllers send, to each other."""
    names: Mapping[int, str]
    surfaces: tuple[WireSurface, ...]
    """Oldest release first; ZooKeeper before KRaft."""


@cache
def api_versions() -> ApiVersionsTable:
    """Return the table of the API versions that each release serves."""
    table: dict[str, Any] = json.loads((FIXTURES / "kafka-api-versions.json").read_text())
    names: dict[int, str] = {int(key): name for key, name in table["names"].items()}
    return ApiVersionsTable(
        internal=frozenset(table["internal"]),
        names=names,
        surfaces=tuple(
            WireSurface(
                line=row["line"],
                mode=row["mode"],
                broker=row["broker"],
                has_api_versions=row["has_api_versions"],
                apis={int(key): (low, high) for key, (low, high) in row["apis"].items()},
            )
            for row in table["releases"]
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDefinition:
    """A config as one release defines it."""

    type: str
    default: str | None
    """None stands for Kafka's null."""
    valid: str | None
    """The valid values in Kafka's own notation: "[1,...]", "[compact, delete]"; None: every value of the type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigsTable:
    """The content of `fixtures/kafka-configs.json`."""

    releases: tuple[str, ...]
    """The releases with definitions, oldest first."""
    broker: Mapping[str, Mapping[str, ConfigDefinition]]
    """Release -> name -> definition, of the broker settings that kproto knows."""
    topic: Mapping[str, Mapping[str, ConfigDefinition]]
    """Release -> name -> definition, of all topic configs."""
    group: Mapping[str, Mapping[str, ConfigDefinition]]
    """Release -> name -> definition, of all group configs, from 4.0 on."""
    synonyms: Mapping[str, str]
    """Topic config -> the broker setting that is its default, where DescribeConfigs names one."""


@cache
def configs() -> ConfigsTable:
    """Return the configuration definitions of Kafka's releases."""
    table: dict[str, Any] = json.loads((FIXTURES / "kafka-configs.json").read_text())
    releases = tuple(table["releases"])
    return ConfigsTable(
        releases=releases,
        broker=_by_release(releases, table["broker"]),
        topic=_by_release(releases, table["topic"]),
        group=_by_release(releases, table["group"]),
        synonyms=table["synonyms"],
    )


def _by_release(
    releases: tuple[str, ...], histories: dict[str, list[list[Any]]]
) -> dict[str, dict[str, ConfigDefinition]]:
    found: dict[str, dict[str, ConfigDefinition]] = {release: {} for release in releases}
    for name, history in histories.items():
        changes = {since: values for since, *values in history}
        current: list[Any] = [None]
        for release in releases:
            current = changes.get(release, current)
            if current != [None]:
                found[release][name] = ConfigDefinition(type=current[0], default=current[1], valid=current[2])
    return found
