"""The settings of KIP-842 and KIP-333: accepted values and error messages (CK-1 to CK-6, CK-50, CK-65, CK-82)."""

import pytest

from kproto.client.configuration import read
from kproto.client.decisions.settings import (
    FETCH_MAX_BYTES_DEFAULT,
    AutoOffsetReset,
    ConfigError,
    OnInvalidOffset,
    OnNoInitialOffset,
    Order,
    Settings,
    parse,
)

INITIAL = "auto.offset.reset.on.no.initial.offset"
ALIAS = "auto.offset.reset.on.initial.offset"
INVALID = "auto.offset.reset.on.invalid.offset"


def test_defaults_are_those_of_released_clients() -> None:
    """CK-1, CK-5, CK-50."""
    assert parse({"group.id": "g"}) == Settings(
        auto_offset_reset=AutoOffsetReset.LATEST,
        on_no_initial_offset=OnNoInitialOffset.NONE,
        on_invalid_offset=OnInvalidOffset.NONE,
        commit_reset_position=True,
        parallel=False,
        buffer1_bytes=FETCH_MAX_BYTES_DEFAULT,
        merge=True,
        order=Order.PARTITION,
    )
    assert not parse({}).resets


@pytest.mark.parametrize("name", [INITIAL, ALIAS])
@pytest.mark.parametrize("value", list(OnNoInitialOffset))
def test_each_no_initial_offset_strategy_has_two_setting_names_and_ignores_case(
    name: str, value: OnNoInitialOffset
) -> None:
    """CK-2, CK-4."""
    for word in (value.value, value.value.upper()):
        assert parse({name: word}).on_no_initial_offset is value


def test_the_two_setting_names_may_not_have_different_values() -> None:
    """CK-2."""
    assert parse({INITIAL: "latest", ALIAS: "LATEST"}).on_no_initial_offset is OnNoInitialOffset.LATEST
    with pytest.raises(ConfigError, match=rf"{INITIAL}.*{ALIAS}"):
        parse({INITIAL: "latest", ALIAS: "earliest"})


@pytest.mark.parametrize("value", list(OnInvalidOffset))
def test_each_invalid_offset_strategy(value: OnInvalidOffset) -> None:
    """CK-3."""
    assert parse({INVALID: value.value.title()}).on_invalid_offset is value


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("latest", AutoOffsetReset.LATEST),
        ("EARLIEST", AutoOffsetReset.EARLIEST),
        ("none", AutoOffsetReset.NONE),
        ("error", AutoOffsetReset.NONE),
    ],
)
def test_auto_offset_reset_keeps_its_meaning(word: str, meaning: AutoOffsetReset) -> None:
    """CK-1; "error" is librdkafka's name of none."""
    assert parse({"auto.offset.reset": word}).auto_offset_reset is meaning


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auto.offset.reset", "nearest"),
        (INITIAL, "nearest"),
        (ALIAS, "sometimes"),
        (INVALID, "latest"),
        ("enable.parallel.rebalance", "perhaps"),
        ("parallel.rebalance.merge", 7),
        ("parallel.rebalance.order", "none"),
        ("parallel.rebalance.buffer.bytes", 0),
        ("parallel.rebalance.buffer.bytes", "many"),
        ("commit.reset.position", ""),
    ],
)
def test_an_invalid_value_is_rejected_with_the_setting_name(name: str, value: object) -> None:
    """CK-4."""
    with pytest.raises(ConfigError, match=f"^{name} is {value!r}"):
        parse({name: value})


def test_the_draft_name_of_on_invalid_offset_is_not_accepted() -> None:
    """CK-3: it stays in the configuration, and librdkafka rejects it."""
    assert not parse({"auto.offset.reset.strategy.offset-out-of-range": "nearest"}).resets


def test_buffer1_limit_defaults_to_fetch_max_bytes() -> None:
    """CK-65."""
    assert parse({"fetch.max.bytes": "1000"}).buffer1_bytes == 1000
    assert parse({"fetch.max.bytes": "0x3200000"}).buffer1_bytes == 50 * 1024 * 1024, "librdkafka takes it"
    for invalid in ("many", 0):
        assert parse({"fetch.max.bytes": invalid}).buffer1_bytes == FETCH_MAX_BYTES_DEFAULT
    assert parse({"fetch.max.bytes": "1000", "parallel.rebalance.buffer.bytes": 7}).buffer1_bytes == 7


@pytest.mark.parametrize(("value", "meaning"), [(True, True), ("FALSE", False), ("1", True), (0, False)])
def test_boolean_settings_accept_python_and_librdkafka_values(value: object, meaning: bool) -> None:
    """CK-50, CK-82."""
    settings = parse({"enable.parallel.rebalance": value, "parallel.rebalance.merge": value})
    assert (settings.parallel, settings.merge) == (meaning, meaning)


@pytest.mark.parametrize(("value", "meaning"), [("partition", Order.PARTITION), ("Key", Order.KEY)])
def test_each_order(value: str, meaning: Order) -> None:
    assert parse({"parallel.rebalance.order": value}).order is meaning


def test_order_by_key_needs_automatic_stores() -> None:
    """One stored offset cannot say which records of the range and which after it are processed."""
    with pytest.raises(
        ConfigError, match=r"^parallel.rebalance.order can't be 'key' with enable.auto.offset.store=false"
    ):
        read({"parallel.rebalance.order": "key", "enable.auto.offset.store": "false"})


def test_no_client_pushes_metrics_if_the_user_says_so() -> None:
    """KIP-714: producers and admin clients have the setting, too."""
    assert read({"group.id": "g", "enable.metrics.push": False}).for_connection() == {"enable.metrics.push": False}
