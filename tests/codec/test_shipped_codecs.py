"""The codecs that the build adds to the wheel are complete, and equal those that a checkout generates (D14).

The build's own function generates them here; ``tests/check_wheel.py`` checks that the wheel contains them.
"""

from __future__ import annotations

import sys
import types

import pytest

from kproto.errors import DecodeError, EncodeError
from kproto.generate.shipping import generated_sources
from kproto.headers import RequestHeader, ResponseHeader
from kproto.message import Message
from kproto.message_codec import MessageCodec, _load_codec, generated_name, message_codec
from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.records.offsets_topic import RECORD_TYPES
from tests.codec.strategies import LAYOUTS, Edges

RECORDS = tuple(cls for pair in RECORD_TYPES.values() for cls in pair)
EVERY_LAYOUT = LAYOUTS + tuple(
    (cls, version)
    for cls in (RequestHeader, ResponseHeader, *RECORDS)
    for version in range(cls._versions.first, cls._versions.last + 1)
)


@pytest.fixture(scope="module")
def shipped() -> dict[str, types.ModuleType]:
    """Name in the wheel -> generated module."""
    modules = {}
    for file, source in generated_sources().items():
        name = f"kproto._generated.{file.removesuffix('.py')}"
        module = modules[name] = types.ModuleType(name)
        exec(compile(source, file, "exec"), module.__dict__)  # noqa: S102 - our own generator's text
    return modules


def functions(shipped: dict[str, types.ModuleType], cls: type[Message], version: int) -> MessageCodec:
    module = shipped[generated_name(cls.__module__)]
    name = f"{cls.__name__}_{version}"
    slices = getattr(module, f"encode_slices_{name}") if cls._has_slices else None
    return MessageCodec(getattr(module, f"decode_{name}"), getattr(module, f"encode_{name}"), slices)


def test_every_layout_is_shipped(shipped: dict[str, types.ModuleType]) -> None:
    for cls, version in EVERY_LAYOUT:
        codec = functions(shipped, cls, version)
        for edges in (Edges(size=1, text=2, tags=1), Edges(null=True)):
            value = edges.of(cls, version)
            data = codec.encode(value)
            assert codec.decode(data, 0) == (value, len(data))
            assert message_codec(cls, version).encode(value) == data
            if codec.encode_slices is not None:
                assert b"".join(codec.encode_slices(value)) == data


def test_generated_modules_do_not_use_construct() -> None:
    for file, source in generated_sources().items():
        assert "construct" not in source, file


def test_errors_name_the_message(shipped: dict[str, types.ModuleType]) -> None:
    """Versions with equal layouts share a function; two messages never do, or an error could name the wrong one."""
    for cls, version in EVERY_LAYOUT:
        codec = functions(shipped, cls, version)
        with pytest.raises(EncodeError) as caught:
            codec.encode(())
        assert caught.value.path == cls.__name__
        if codec.encode_slices is not None:
            with pytest.raises(EncodeError):
                list(codec.encode_slices(()))
        if codec.encode(Edges().of(cls, version)):
            with pytest.raises(DecodeError, match=f"^{cls.__name__}[. ]"):
                codec.decode(b"", 0)


def test_shipped_codecs_are_used(shipped: dict[str, types.ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in shipped.items():
        monkeypatch.setitem(sys.modules, name, module)
    loaded = _load_codec(OffsetCommitRequest, 3)
    assert loaded == functions(shipped, OffsetCommitRequest, 3)


def test_without_shipped_codecs_the_codec_is_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto.message_codec.generated_name", lambda module: "kproto._generated.not_in_this_wheel")
    loaded = _load_codec(OffsetCommitRequest, 3)
    value = Edges(size=1).of(OffsetCommitRequest, 3)
    assert loaded.decode(loaded.encode(value), 0)[0] == value


def test_a_failure_within_a_shipped_module_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto.message_codec.generated_name", lambda module: "module_that_is_nowhere")
    with pytest.raises(ModuleNotFoundError, match="module_that_is_nowhere"):
        _load_codec(OffsetCommitRequest, 3)
