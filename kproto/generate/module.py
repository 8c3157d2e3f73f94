"""Put a module of generated codecs together: imports, constants, functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.generate.constants import ModuleConstants
from kproto.generate.decode import DecoderEmitter
from kproto.generate.encode import EncoderEmitter
from kproto.interpret import construct_of

if TYPE_CHECKING:
    from kproto.declaration import VersionedStruct

EXPECT_ONE = frozenset({8, 9})
"""API keys whose arrays usually have one element and are worth twice the code: OffsetCommit, OffsetFetch."""

PREAMBLE = """\
import struct
from kproto.declaration import TaggedField
from kproto.runtime import (BULK_READ_MIN, FAILURES, PACK_MAX, PACK_MIN, Packers, UNLIMITED, UVARINTS, UniformArray,
    check_bool, check_uuid, decode_failed, decode_malformed_text, encode_failed, join, malformed, more_uvarint, new,
    read_uvarint, tag_section, too_many_elements, unknown_tags, uvarint)
"""


class Module:
    """The source of one generated module; `add` messages, then take `source`."""

    def __init__(self) -> None:
        self.constants = ModuleConstants()
        self.functions: list[str] = []
        self.bodies: dict[str, str] = {}
        """Body of a function without its version -> the name of the first function with that body."""

    def add(self, cls: type[VersionedStruct], version: int) -> None:
        """Add the decoder and the encoder of one message in one version.

        Raises:
            UnsupportedVersion: the version is not declared.
        """
        node = construct_of(cls, version)
        name = self.constants.class_name(cls)
        decoder = DecoderEmitter(self.constants, expect_one=cls._api_key in EXPECT_ONE)
        expression = decoder.struct(node)
        decoder.flush()
        self._function("decode", name, version, "b, p, left=UNLIMITED", [
            "    start, most = p, left",
            "    size = len(b)",
            "    try:",
            *decoder.lines,
            f"        value = {expression}",
            "        if p > size: malformed()",
            "        return value, p",
            f"    except UnicodeDecodeError: return decode_malformed_text(decode_{name}_{version}, b, start, most)",
            "    except FAILURES: pass",
            f"    raise decode_failed({name}, {version}, b, start)",
        ])  # fmt: skip
        self._encoder("encode", cls, version, "return")
        if cls._has_slices:
            self._encoder("encode_slices", cls, version, "yield")

    def _encoder(self, verb: str, cls: type[VersionedStruct], version: int, result: str) -> None:
        """Add an encoder that returns the body, or a generator that yields it in pieces.

        The argument ``whole`` joins the pieces of the whole body; those of a part of it are joined by `join`.
        """
        name = self.constants.class_name(cls)
        in_slices = result == "yield"
        encoder = EncoderEmitter(self.constants, expect_one=cls._api_key in EXPECT_ONE and not in_slices)
        encoder.in_slices = in_slices
        encoder.struct(construct_of(cls, version), "value")
        encoder.flush()
        done = ["        return"] if encoder.in_slices else []
        self._function(verb, name, version, "value" if in_slices else "value, whole=join", [
            "    parts = []",
            "    out = parts.append",
            *(["    size = 0"] if in_slices else []),
            "    try:",
            *encoder.lines,
            f"        {result} {'join' if in_slices else 'whole'}(parts)",
            *done,
            "    except FAILURES as error: failure = error",
            f"    raise encode_failed({name}, {version}, value, failure)",
        ])  # fmt: skip

    def _function(self, verb: str, cls: str, version: int, parameters: str, body: list[str]) -> None:
        """Add a function, or only a second name for the function of an earlier version with the same layout.

        The earlier version then also appears in the diagnosis of errors, which is the same for both.
        """
        name = f"{verb}_{cls}_{version}"
        text = "\n".join(body)
        without_version = text.replace(f"{cls}, {version},", f"{cls},").replace(name, verb)
        if (earlier := self.bodies.get(without_version)) is not None:
            self.functions.append(f"{name} = {earlier}\n")
            return
        self.bodies[without_version] = name
        self.functions.append(f"def {name}({parameters}):\n{text}\n")

    def source(self) -> str:
        """Return the module's text."""
        modules: dict[str, list[str]] = {}
        for name, cls in self.constants.classes.items():
            modules.setdefault(cls.__module__, []).append(name)
        imports = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(modules.items())]
        return "\n".join([PREAMBLE, *imports, "", *self.constants.definitions(), "", *self.functions])
