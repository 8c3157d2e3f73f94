"""The new settings: what they can be, and what is said of what they can't be (CK-1 to CK-6, CK-50, CK-65, CK-82)."""

import pytest

from kproto.client.core.settings import (
    FETCH_MAX_BYTES_DEFAULT,
    ConfigError,
    OnInvalidOffset,
    OnNoInitialOffset,
    Reset,
    Settings,
    parse,
)

INITIAL = "auto.offset.reset.on.no.initial.offset"
ALIAS = "auto.offset.reset.on.initial.offset"
INVALID = "auto.offset.reset.on.invalid.offset"


def test_nothing_given_is_the_released_client() -> None:
    """CK-1, CK-5, CK-50."""
    assert parse({"group.id": "g"}) == Settings(
        reset=Reset.LATEST,
        on_no_initial_offset=OnNoInitialOffset.NONE,
        on_invalid_offset=OnInvalidOffset.NONE,
        commit_reset_position=True,
        parallel=False,
        buffer_bytes=FETCH_MAX_BYTES_DEFAULT,
        merge=True,
    )
    assert not parse({}).resets


@pytest.mark.parametrize("name", [INITIAL, ALIAS])
@pytest.mark.parametrize("value", list(OnNoInitialOffset))
def test_each_initial_strategy_has_two_names_and_any_case(name: str, value: OnNoInitialOffset) -> None:
    """CK-2, CK-4."""
    for word in (value.value, value.value.upper()):
        assert parse({name: word}).on_no_initial_offset is value


def test_the_two_names_may_agree_but_not_differ() -> None:
    """CK-2."""
    assert parse({INITIAL: "latest", ALIAS: "LATEST"}).on_no_initial_offset is OnNoInitialOffset.LATEST
    with pytest.raises(ConfigError, match=rf"{INITIAL}.*{ALIAS}"):
        parse({INITIAL: "latest", ALIAS: "earliest"})


@pytest.mark.parametrize("value", list(OnInvalidOffset))
def test_each_invalid_strategy(value: OnInvalidOffset) -> None:
    """CK-3."""
    assert parse({INVALID: value.value.title()}).on_invalid_offset is value


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("latest", Reset.LATEST), ("EARLIEST", Reset.EARLIEST), ("none", Reset.NONE), ("error", Reset.NONE)],
)
def test_auto_offset_reset_keeps_its_meaning(word: str, meaning: Reset) -> None:
    """CK-1; "error" is librdkafka's word for none."""
    assert parse({"auto.offset.reset": word}).reset is meaning


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auto.offset.reset", "nearest"),
        (INITIAL, "nearest"),
        (ALIAS, "sometimes"),
        (INVALID, "latest"),
        ("enable.parallel.rebalance", "perhaps"),
        ("parallel.rebalance.merge", 7),
        ("parallel.rebalance.buffer.bytes", 0),
        ("parallel.rebalance.buffer.bytes", "many"),
        ("commit.reset.position", ""),
    ],
)
def test_what_a_setting_cannot_be_is_refused_by_its_name(name: str, value: object) -> None:
    """CK-4."""
    with pytest.raises(ConfigError, match=f"^{name} is {value!r}"):
        parse({name: value})


def test_the_draft_name_of_invalid_offset_is_none_of_ours() -> None:
    """CK-3: it is left in the configuration, where the client refuses it."""
    assert not parse({"auto.offset.reset.strategy.offset-out-of-range": "nearest"}).resets


def test_buffer_is_as_large_as_a_fetch_unless_told() -> None:
    """CK-65."""
    assert parse({"fetch.max.bytes": "1000"}).buffer_bytes == 1000
    assert parse({"fetch.max.bytes": "1000", "parallel.rebalance.buffer.bytes": 7}).buffer_bytes == 7


@pytest.mark.parametrize(("value", "meaning"), [(True, True), ("FALSE", False), ("1", True), (0, False)])
def test_switches_take_pythons_and_librdkafkas_booleans(value: object, meaning: bool) -> None:
    """CK-50, CK-82."""
    settings = parse({"enable.parallel.rebalance": value, "parallel.rebalance.merge": value})
    assert (settings.parallel, settings.merge) == (meaning, meaning)
