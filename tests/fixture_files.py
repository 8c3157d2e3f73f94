"""Typed readers of the files under `fixtures/`: the one way by which tests read them. Nothing here judges.

`definitions("4.4.0")` are Kafka's message definitions, `golden("OffsetCommit")` recorded requests with the
answers of real brokers, `conversations()` what real clients said, `api_versions()` and `error_codes()`
Kafka's tables. Where the facts come from is told in each folder's `PROVENANCE.md`.
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
"""The releases whose message definitions are kept, newest first. Retired versions stand only in the older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFacts:
    """One row of Kafka's error table."""

    code: int
    name: str
    retriable: bool
    message: str


@cache
def error_codes() -> Mapping[str, ErrorFacts]:
    """Kafka's error table by name."""
    rows: list[dict[str, Any]] = json.loads((FIXTURES / "kafka-error-codes.json").read_text())
    return {row["name"]: ErrorFacts(**row) for row in rows}


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, ends included; `low` above `high` is the empty one."""

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
class FieldFacts:
    """One field of a message, in Kafka's words."""

    name: str
    type: str
    """"int32", "string", "bytes", "records", "uuid", a structure's name ...; "[]X" is an array of X."""
    versions: Versions
    nullable_versions: Versions
    tagged_versions: Versions
    tag: int | None
    flexible_versions: Versions | None
    """Overrides the message's own where it is given. RequestHeader's ClientId alone has it."""
    has_default: bool
    default: Any
    """A value of the field's type. None: there is none, or it is null (see `has_default`)."""
    ignorable: bool
    fields: tuple["FieldFacts", ...]
    """Those of the structure that `type` names, common structures resolved; empty for plain types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A message of one Kafka release."""

    name: str
    kind: str
    """"request", "response", "header", "data", "coordinator-key" or "coordinator-value"."""
    api_key: int | None
    """The API key; of a coordinator's key or value the record type (absent for most in 3.9.2)."""
    listeners: tuple[str, ...]
    """Of a request: "broker", "controller" and (3.9.2) "zkBroker"."""
    valid_versions: Versions
    flexible_versions: Versions
    newest_is_unstable: bool
    """Whether brokers keep the newest version to themselves by default."""
    fields: tuple[FieldFacts, ...]


def _fields(rows: list[dict[str, Any]], structures: Mapping[str, list[dict[str, Any]]]) -> tuple[FieldFacts, ...]:
    return tuple(_field(row, structures) for row in rows)


def _field(row: dict[str, Any], structures: Mapping[str, list[dict[str, Any]]]) -> FieldFacts:
    inner = row.get("fields") or structures.get(row["type"].removeprefix("[]"), [])
    return FieldFacts(
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
        fields=_fields(inner, structures),
    )


@cache
def definitions(release: str) -> Mapping[str, Definition]:
    """The message definitions of one of `RELEASES` by name ("OffsetCommitRequest")."""
    found = {}
    for path in sorted((FIXTURES / "kafka-definitions" / release).glob("*.json")):
        row = json.loads(path.read_text())
        structures = {structure["name"]: structure["fields"] for structure in row.get("commonStructs", [])}
        found[row["name"]] = Definition(
            name=row["name"],
            kind=row["type"],
            api_key=row.get("apiKey"),
            listeners=tuple(row.get("listeners", ())),
            valid_versions=Versions.parse(row["validVersions"]),
            flexible_versions=Versions.parse(row.get("flexibleVersions", "none")),
            newest_is_unstable=row.get("latestVersionUnstable", False),
            fields=_fields(row["fields"], structures),
        )
    return found


@cache
def definition(name: str, version: int) -> Definition:
    """The newest definition of a message that still knows this version.

    Raises:
        KeyError: none does.
    """
    for release in RELEASES:
        facts = definitions(release).get(name)
        if facts and version in facts.valid_versions:
            return facts
    raise KeyError(f"{name} v{version}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenPair:
    """A request and what real brokers answered, byte for byte, without the 4-byte size."""

    api: str
    api_key: int
    api_version: int
    brokers: Mapping[str, int]
    """The releases that answered so, each with this pair's place in its recording: lower ones were sent
    before. The bytes are the first one's; others differ in correlation id and generated member ids only."""
    note: str
    """The situation."""
    request: bytes
    response: bytes | None
    """None: the broker closed the connection, or gave no answer where the note says so."""
    request_values: Mapping[str, Any] | None
    """What was asked, by Kafka's field names; None for frames made by hand and for long ones."""
    response_values: Mapping[str, Any] | None
    """The answer as an independent decoder read it; None also for long ones."""
    waited: bool | None = None
    """Of a Fetch in `golden_topics`: whether the broker answered only at the end of max_wait."""


@cache
def golden(api: str) -> tuple[GoldenPair, ...]:
    """All recorded pairs of an API by its name ("OffsetCommit")."""
    lines = (GOLDEN / "frames" / f"{api}.jsonl").read_text().splitlines()
    return tuple(_golden_pair(api, json.loads(line)) for line in lines)


@cache
def golden_releases(api: str) -> tuple[GoldenPair, ...]:
    """The same questions put to a broker of each release line, fresh and alone, in each mode: which answered how.

    A key of `brokers` may end in "-zookeeper", as a release's name may; ports, ids and correlation ids are made equal.
    """
    lines = (GOLDEN / "releases" / f"{api}.jsonl").read_text().splitlines()
    return tuple(_golden_pair(api, json.loads(line)) for line in lines)


@cache
def golden_topics(recording: str) -> tuple[GoldenPair, ...]:
    """One broker's whole recording on topics, in the order of the wire: "2.1.1", "4.4.0", "4.4.0-others" ..."""
    names = api_versions().names
    rows = [json.loads(line) for line in (GOLDEN / "topics" / f"{recording}.jsonl").read_text().splitlines()]
    return tuple(
        _golden_pair(names[row["api_key"]], {**row, "brokers": {recording: place}}) for place, row in enumerate(rows)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStep:
    """One step of a recording of several brokers: a broker stopped or started, or a pair exchanged with it."""

    node_id: int
    does: str | None
    """"stop" or "start"; None: it was asked."""
    pair: GoldenPair | None


@cache
def golden_cluster(recording: str) -> tuple[ClusterStep, ...]:
    """What three brokers answered while some of them stopped and started: "2.8.2-three-brokers" ..."""
    names = api_versions().names
    steps = []
    for place, line in enumerate((GOLDEN / "topics" / f"{recording}.jsonl").read_text().splitlines()):
        row = json.loads(line)
        does = row.get("do")
        pair = None if does else _golden_pair(names[row["api_key"]], {**row, "brokers": {recording: place}})
        steps.append(ClusterStep(node_id=row["node"], does=does, pair=pair))
    return tuple(steps)


def golden_apis() -> tuple[str, ...]:
    """The names of the APIs that `golden` knows."""
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
    """A response carries those of its request."""
    correlation_id: int
    frame: bytes


@cache
def conversations() -> Mapping[str, tuple[ConversationFrame, ...]]:
    """All frames of real clients' conversations in the order of the wire, by recording ("4.4.0-aiokafka")."""
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
    """The log directory of a broker as 2.0.1, 2.1.1 or 4.4.0 left it, with dumps beside the segments."""
    return GOLDEN / "logs" / release


@cache
def expiry_recordings() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """What came of timelines of expiry in real brokers: release, name of the timeline, facts."""
    paths = sorted((FIXTURES / "expiry").glob("*.json"), key=lambda path: [int(n) for n in path.stem.split(".")])
    return {path.stem: json.loads(path.read_text())["timelines"] for path in paths}


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSurface:
    """What a client at a broker of one release, in one mode, may send."""

    line: str
    """The release line: "0.8.2", "2.0", "4.4"."""
    mode: str
    """"zookeeper" or "kraft"."""
    broker: str
    """The release that was asked."""
    has_api_versions: bool
    apis: Mapping[int, tuple[int, int]]
    """API key: least and greatest version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsTable:
    """`fixtures/kafka-api-versions.json`."""

    internal: frozenset[int]
    """Keys that brokers and controllers send each other."""
    names: Mapping[int, str]
    surfaces: tuple[WireSurface, ...]
    """Oldest release first; ZooKeeper before KRaft."""


@cache
def api_versions() -> ApiVersionsTable:
    """Which release serves which versions of which API."""
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
class ConfigFacts:
    """A config as the definitions of one release have it."""

    type: str
    default: str | None
    """None is Kafka's null."""
    valid: str | None
    """Kafka's own words for what it may be: "[1,...]", "[compact, delete]"; None: anything of the type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigsTable:
    """`fixtures/kafka-configs.json`."""

    releases: tuple[str, ...]
    """Those whose definitions were read, oldest first."""
    broker: Mapping[str, Mapping[str, ConfigFacts]]
    """Release: name: facts, of those broker settings that kproto knows."""
    topic: Mapping[str, Mapping[str, ConfigFacts]]
    """Release: name: facts, of all topic configs."""
    synonyms: Mapping[str, str]
    """Topic config: the broker setting that is its default, where DescribeConfigs names one."""


@cache
def configs() -> ConfigsTable:
    """The configuration definitions of Kafka's releases."""
    table: dict[str, Any] = json.loads((FIXTURES / "kafka-configs.json").read_text())
    releases = tuple(table["releases"])
    return ConfigsTable(
        releases=releases,
        broker=_by_release(releases, table["broker"]),
        topic=_by_release(releases, table["topic"]),
        synonyms=table["synonyms"],
    )


def _by_release(releases: tuple[str, ...], histories: dict[str, list[list[Any]]]) -> dict[str, dict[str, ConfigFacts]]:
    found: dict[str, dict[str, ConfigFacts]] = {release: {} for release in releases}
    for name, history in histories.items():
        steps = {since: facts for since, *facts in history}
        now: list[Any] = [None]
        for release in releases:
            now = steps.get(release, now)
            if now != [None]:
                found[release][name] = ConfigFacts(type=now[0], default=now[1], valid=now[2])
    return found
