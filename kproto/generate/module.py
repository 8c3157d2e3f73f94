"""Put a module of generated codecs together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.generate.decode import DecoderEmitter
from kproto.generate.encode import EncoderEmitter
from kproto.interpret import construct_of

if TYPE_CHECKING:
    from kproto.declaration import Message
    from kproto.generate.rows import Row

PEELED = frozenset({8, 9})
"""API keys whose arrays often have one element and are met on the hot path: OffsetCommit, OffsetFetch."""

PREAMBLE = """\
import struct
from kproto.declaration import TaggedField
from kproto.runtime import (Alike, FAILURES, PACK_MAX, PACK_MIN, Packers, SCAN_MIN, UVARINTS, check_bool, check_uuid,
    decode_failed, encode_failed, join, malformed, more_uvarint, new, read_uvarint, tag_section, unknown_tags, uvarint)
"""


class Module:
    """Source of one module of codecs: functions, and the struct and class constants that they share."""

    def __init__(self) -> None:
        self.classes: dict[str, type[Any]] = {}
        self.structs: dict[str, str] = {}
        self.constants: list[Any] = []
        self.functions: list[str] = []
        self.bodies: dict[str, str] = {}

    def cls(self, cls: type[Any]) -> str:
        name: str = cls.__name__
        self.classes[name] = cls
        return name

    def _struct(self, codes: str, method: str) -> str:
        name = f"{method}_{codes.replace('?', '_')}"
        self.structs[name] = f"{name} = struct.Struct('>{codes}').{method}"
        return name

    def alike(self, row: Row) -> str:
        arguments = (row.before, row.prefix, row.kind, row.after, row.zeros, row.nullable)
        line = f"Alike{arguments!r}"
        name = f"alike_{len(self.structs)}"
        known = {text.partition(" = ")[2]: known_name for known_name, text in self.structs.items()}
        if line in known:
            return known[line]
        self.structs[name] = f"{name} = {line}"
        return name

    def packers(self, codes: str) -> str:
        name = f"packers_{codes.replace('?', '_')}"
        self.structs[name] = f"{name} = Packers({codes!r})"
        return name

    def unpack(self, codes: str) -> str:
        return self._struct(codes, "unpack_from")

    def iter_unpack(self, codes: str) -> str:
        return self._struct(codes, "iter_unpack")

    def pack(self, codes: str) -> str:
        return self._struct(codes, "pack")

    def constant(self, value: Any) -> str:
        """A default that is a struct: made once, by its class's own defaults."""
        cls = type(value)
        self.cls(cls)
        name = f"DEFAULT_{cls.__name__}"
        assert value == cls(), f"the default of a {cls.__name__} field is {cls.__name__}()"
        self.structs[name] = f"{name} = {cls.__name__}()"
        return name

    def add(self, cls: type[Message], version: int) -> None:
        """Add the decoder and the encoder of one message in one version."""
        node = construct_of(cls, version)
        self.cls(cls)
        peel = getattr(cls, "_api_key", None) in PEELED
        decoder = DecoderEmitter(self, peel=peel)
        expression = decoder.struct(node)
        decoder.flush()
        self._function("decode", cls, version, "b, p", [
            "    start = p",
            "    size = len(b)",
            "    try:",
            *decoder.lines,
            f"        value = {expression}",
            "        if p > size: malformed()",
            "        return value, p",
            "    except FAILURES: pass",
            f"    raise decode_failed({cls.__name__}, {version}, b, start)",
        ])  # fmt: skip
        encoder = EncoderEmitter(self, peel=peel)
        encoder.struct(node, "value")
        encoder.flush()
        self._function("encode", cls, version, "value", [
            "    parts = []",
            "    out = parts.append",
            "    try:",
            *encoder.lines,
            "        return join(parts)",
            "    except FAILURES as error: failure = error",
            f"    raise encode_failed({cls.__name__}, {version}, value, failure)",
        ])  # fmt: skip

    def _function(self, verb: str, cls: type[Message], version: int, parameters: str, body: list[str]) -> None:
        name = f"{verb}_{cls.__name__}_{version}"
        text = "\n".join(body)
        same = text.replace(f"{cls.__name__}, {version},", f"{cls.__name__},")
        if (twin := self.bodies.get(same)) is not None:
            self.functions.append(f"{name} = {twin}\n")
            return
        self.bodies[same] = name
        self.functions.append(f"def {name}({parameters}):\n{text}\n")

    def source(self) -> str:
        """Return the module's text."""
        modules: dict[str, list[str]] = {}
        for name, cls in self.classes.items():
            modules.setdefault(cls.__module__, []).append(name)
        imports = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(modules.items())]
        return "\n".join([PREAMBLE, *imports, "", *self.structs.values(), "", *self.functions])
