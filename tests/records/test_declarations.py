"""Each declaration of a record equals Kafka's definition, field by field, in every version; both codecs agree."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kproto.declaration import Field, Struct, TaggedField, WireType, fields_of
from kproto.errors import DecodeError
from kproto.interpret import InterpretedCodec
from kproto.message import Message
from kproto.message_codec import message_codec
from kproto.records import offsets_topic, share_group_state, transaction_state
from kproto.records.batch_header import RecordBatchHeader
from kproto.records.consumer_group_records import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue
from kproto.records.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kproto.records.control import ControlRecordTypeSchema, EndTxnMarker
from kproto.records.message_set import LegacyMessage
from tests.fixture_files import Definition, FieldDefinition, definitions

PAIRS = (
    *offsets_topic.RECORD_TYPES.values(),
    *transaction_state.RECORD_TYPES.values(),
    *share_group_state.RECORD_TYPES.values(),
)
BY_DEFINITION: tuple[type[Message], ...] = (
    *(key for key, _ in PAIRS),
    *(value for _, value in PAIRS),
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
    ControlRecordTypeSchema,
    EndTxnMarker,
)
BY_HAND: tuple[type[Message], ...] = (RecordBatchHeader, LegacyMessage, ClassicMemberMetadata)
"""Layouts that Kafka defines in code, or inside of another definition."""
ALL_VERSIONS = [(cls, v) for cls in BY_DEFINITION + BY_HAND for v in range(cls._versions[0], cls._versions[1] + 1)]
each_version = pytest.mark.parametrize(
    ("cls", "version"), ALL_VERSIONS, ids=[f"{cls.__name__} v{version}" for cls, version in ALL_VERSIONS]
)

ONLY_IN_3_9 = {"ShareGroupPartitionMetadataKey", "ShareGroupPartitionMetadataValue"}
KEPT_AS_TAG = {("ConsumerGroupMemberMetadataValue", "ClassicMemberMetadata")}
"""The declaration keeps this field among the unknown tags; see the class."""


LEFT_OUT_WHEN_EMPTY = {"AssignmentEpochs", "LastAssignmentConfigs"}
"""Tagged arrays: the default is null in Kafka's definition and empty in its code, which omits empty arrays only."""


def definition_of(cls: type[Message]) -> Definition:
    return definitions("3.9.2" if cls.__name__ in ONLY_IN_3_9 else "4.4.0")[cls.__name__]


def test_every_record_type_of_kafkas_topics_is_declared() -> None:
    kafkas_types = {
        (definition.api_key, name)
        for name, definition in definitions("4.4.0").items()
        if definition.kind == "coordinator-key"
    }
    ours = {(key._record_type, key.__name__) for key, _ in PAIRS}
    assert ours - kafkas_types == {(9, "ShareGroupPartitionMetadataKey")}
    assert kafkas_types <= ours


def test_a_key_and_its_value_have_one_type() -> None:
    for key, value in PAIRS:
        assert key.__name__.removesuffix("Key") == value.__name__.removesuffix("Value")
        if key.__name__ not in ONLY_IN_3_9:
            assert definition_of(value).api_key == key._record_type


each_definition = pytest.mark.parametrize("cls", BY_DEFINITION, ids=lambda cls: cls.__name__)


def kafkas_version(cls: type[Message], version: int) -> int:
    """Return the version in the definition: in 3.9.2, the version of a key is its type."""
    return 9 if cls.__name__ == "ShareGroupPartitionMetadataKey" else version


@each_definition
def test_versions_are_kafkas(cls: type[Message]) -> None:
    definition = definition_of(cls)
    first, last = cls._versions
    assert (kafkas_version(cls, first), kafkas_version(cls, last)) == (
        definition.valid_versions.low,
        definition.valid_versions.high,
    )
    for version in range(first, last + 1):
        assert cls._flexible.covers(version) == (kafkas_version(cls, version) in definition.flexible_versions)


@each_definition
def test_fields_are_kafkas(cls: type[Message]) -> None:
    for version in range(cls._versions[0], cls._versions[1] + 1):
        check_fields(cls, definition_of(cls).fields, version, kafkas_version(cls, version))


def check_fields(cls: type[Struct], definition: tuple[FieldDefinition, ...], version: int, kafka_version: int) -> None:
    """Compare the fields of one version in their order."""
    ours = [field for field in fields_of(cls) if field.versions.covers(version)]
    theirs = [f for f in definition if kafka_version in f.versions and (cls.__name__, f.name) not in KEPT_AS_TAG]
    assert [field.name.replace("_", "") for field in ours] == [kafkas.name.lower() for kafkas in theirs]
    for field, kafkas in zip(ours, theirs, strict=True):
        check_field(field, kafkas, version, kafka_version)


def check_field(field: Field, kafkas: FieldDefinition, version: int, kafka_version: int) -> None:
    tag = field.tag.number if field.tag is not None and field.tag.versions.covers(version) else None
    assert tag == (kafkas.tag if kafka_version in kafkas.tagged_versions else None)
    assert field.nullable_versions.covers(version) == (kafka_version in kafkas.nullable_versions)
    assert field.ignorable == kafkas.ignorable
    if kafkas.has_default:
        assert field.default == (() if tag is not None and kafkas.name in LEFT_OUT_WHEN_EMPTY else kafkas.default)
    check_type(field.type, kafkas.type, kafkas.fields, version, kafka_version)


def check_type(
    ours: WireType, theirs: str, inner: tuple[FieldDefinition, ...], version: int, kafka_version: int
) -> None:
    if theirs.startswith("[]"):
        assert ours.kind == "array"
        assert ours.element is not None
        check_type(ours.element, theirs[2:], inner, version, kafka_version)
    elif inner:
        assert ours.struct is not None
        check_fields(ours.struct, inner, version, kafka_version)
    else:
        assert ours.kind == theirs


INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def values_of(kind: WireType, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    match kind.kind:
        case "string":
            return TEXT
        case "bytes":
            return st.binary(max_size=30)
        case "uuid":
            return st.binary(min_size=16, max_size=16)
        case "array":
            assert kind.element is not None
            return st.lists(values_of(kind.element, version, flexible), max_size=3).map(tuple)
        case "struct":
            assert kind.struct is not None
            return structs(kind.struct, version, flexible)
        case "uint16":
            return st.integers(0, 2**16 - 1)
        case "uint32":
            return st.integers(0, 2**32 - 1)
        case number:
            half = 2 ** (INTEGERS[number] - 1)
            return st.integers(-half, half - 1)


def structs(cls: type[Struct], version: int, flexible: bool) -> st.SearchStrategy[Any]:
    """Values of a class that can be encoded in this version."""
    fields = {}
    for field in fields_of(cls):
        if field.versions.covers(version):
            value = values_of(field.type, version, flexible)
            fields[field.name] = st.none() | value if field.nullable_versions.covers(version) else value
        else:
            fields[field.name] = st.just(field.default)
    tags = st.lists(st.integers(100, 2**31), max_size=2 if flexible else 0, unique=True).map(sorted)
    unknown = tags.map(lambda numbers: tuple(TaggedField(number, b"tagged") for number in numbers))
    return st.builds(cls, **fields, unknown_tagged_fields=unknown)


@each_version
def test_both_codecs_agree_on_any_value(cls: type[Message], version: int) -> None:
    reference, generated = InterpretedCodec(cls, version), message_codec(cls, version)

    @settings(max_examples=30)
    @given(structs(cls, version, cls._flexible.covers(version)))
    def check(value: Message) -> None:
        data = reference.encode(value)
        assert generated.encode(value) == data
        assert reference.decode(data) == generated.decode(data, 0) == (value, len(data))

    check()


@each_version
def test_both_codecs_give_the_same_result_for_damaged_bytes(cls: type[Message], version: int) -> None:
    reference, generated = InterpretedCodec(cls, version), message_codec(cls, version)

    @settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
    @given(structs(cls, version, cls._flexible.covers(version)), st.data())
    def check(value: Message, choice: st.DataObject) -> None:
        data = bytearray(generated.encode(value))
        if data:
            data[choice.draw(st.integers(0, len(data) - 1))] = choice.draw(st.integers(0, 255))
        damaged = bytes(data[: choice.draw(st.integers(0, len(data)))])
        assert outcome(lambda: generated.decode(damaged, 0)) == outcome(lambda: reference.decode(damaged))

    check()


def outcome(decode: Callable[[], Any]) -> Any:
    """Return the decoded value, or the text of the error."""
    try:
        return decode()
    except DecodeError as error:
        return str(error)


MEMBER = ConsumerGroupMemberMetadataValue(
    instance_id=None,
    rack_id=None,
    client_id="c",
    client_host="/127.0.0.1",
    subscribed_topic_names=("t",),
    subscribed_topic_regex="",
    server_assignor="uniform",
)


WITHOUT = MEMBER.replace(unknown_tagged_fields=())


def test_a_null_struct_in_a_tag_is_one_byte() -> None:
    """The end of a record in the 4.4.0 log: one tag, number 0, one byte, 0."""
    assert MEMBER.classic_member_metadata is None
    assert MEMBER.encode(0) == WITHOUT.encode(0)[:-1] + bytes.fromhex("01 00 01 00")
    assert WITHOUT.with_classic_member_metadata(None) == MEMBER
    assert ConsumerGroupMemberMetadataValue.decode(MEMBER.encode(0), 0) == MEMBER


def test_a_struct_in_a_tag_follows_one_byte() -> None:
    classic = ClassicMemberMetadata(session_timeout_ms=5, supported_protocols=())
    member = MEMBER.replace(unknown_tagged_fields=(TaggedField(0, b"\0"), TaggedField(7, b"newer")))
    member = member.with_classic_member_metadata(classic)
    assert member.encode(0) == WITHOUT.encode(0)[:-1] + bytes.fromhex("02 00 07 01 00000005 01 00 07 05") + b"newer"
    assert ConsumerGroupMemberMetadataValue.decode(member.encode(0), 0).classic_member_metadata == classic


def test_a_missing_struct_in_a_tag_is_an_empty_one() -> None:
    empty = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())
    assert ConsumerGroupMemberMetadataValue.decode(WITHOUT.encode(0), 0) == WITHOUT
    assert WITHOUT.classic_member_metadata == empty
    assert MEMBER.with_classic_member_metadata(empty) == WITHOUT


@pytest.mark.parametrize("content", ["", "02", "01", "0100000005", "01000000050100ff"])
def test_another_byte_or_struct_in_the_tag_is_refused(content: str) -> None:
    member = MEMBER.replace(unknown_tagged_fields=(TaggedField(0, bytes.fromhex(content)),))
    with pytest.raises(DecodeError):
        _ = member.classic_member_metadata
