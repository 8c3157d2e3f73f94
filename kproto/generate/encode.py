"""Emit encoders."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from construct import Construct

from kproto.generate.emitter import Emitter
from kproto.generate.tree import fixed_code, prefix_code
from kproto.primitives import (
    STRING_SIZE_MAX,
    KafkaArray,
    KafkaString,
    NullableStruct,
    Prefixed,
    TypedStruct,
)

if TYPE_CHECKING:
    pass

CHECKED = {"16s": "check_uuid({})", "?": "check_bool({})"}
"""How an encoder writes what struct would take any value for."""


class EncoderEmitter(Emitter):
    """Emit writes. ``pending`` holds (code, expression) of fixed fields that one pack will write."""

    def flush(self) -> None:
        if self.pending:
            self.line(f"out({self.packed(self.pending)})")
            self.pending = []

    def packed(self, pending: list[tuple[str, str]]) -> str:
        codes = "".join(code for code, _ in pending)
        return f"{self.module.pack(codes)}({', '.join(expression for _, expression in pending)})"

    def value(self, node: Construct, source: str) -> None:
        if (code := fixed_code(node)) is not None:
            self.pending.append((code, CHECKED.get(code, "{}").format(source)))
        elif isinstance(node, TypedStruct):
            self.struct(node, source)
        elif isinstance(node, NullableStruct):
            self.nullable_struct(node, source)
        else:
            assert isinstance(node, Prefixed)
            self.prefixed(node, source)

    def struct(self, node: TypedStruct, source: str) -> None:
        names = self.unpacked(node)
        self.line(f"{', '.join(names)}, = {source}")
        self.fields(node, names)

    def unpacked(self, node: TypedStruct) -> list[str]:
        return [self.name() for _ in node.defaults]

    def fields(self, node: TypedStruct, names: list[str]) -> None:
        """Write the fields of a struct whose items already have names."""
        for refusal in self.refusals(node, names):
            self.line(f"if {refusal}: malformed()")
        for field in node.subcon.subcons:
            self.value(field.subcon, names[node.indices[field.name]])
        if node.tags is not None:
            self.tags(node, names)

    def refusals(self, node: TypedStruct, names: list[str]) -> list[str]:
        """Conditions under which this version has no form for the value."""
        found = [f"{names[index]} != {self.constant(default)}" for _, index, default in node.absent]
        return found if node.tags is not None else [*found, names[-1]]

    def tags(self, node: TypedStruct, names: list[str]) -> None:
        assert node.tags is not None
        set_ = [f"{names[known.index]} != {self.constant(known.default)}" for known in node.tags.values()]
        if not set_:
            self.flush_and_tags(names[-1], "{}")
            return
        self.flush()
        known_tags = self.name()
        self.line(f"{known_tags} = {{}}")
        for condition, (number, known) in zip(set_, node.tags.items(), strict=True):
            self.line(f"if {condition}:")
            self.indent += 1
            outer = self.name()
            self.line(f"{outer} = out; parts_{outer} = []; out = parts_{outer}.append")
            self.value(known.subcon, names[known.index])
            self.flush()
            self.line(f"{known_tags}[{number}] = join(parts_{outer}); out = {outer}")
            self.indent -= 1
        self.line(f"out(tag_section({names[-1]}, {known_tags}) if {known_tags} or {names[-1]} else UVARINTS[0])")

    def flush_and_tags(self, unknown: str, known: str) -> None:
        self.flush()
        self.line(f"out(tag_section({unknown}, {known}) if {unknown} else UVARINTS[0])")

    def nullable_struct(self, node: NullableStruct, source: str) -> None:
        self.flush()
        self.line(f"if {source} is None: out(b'\\xff')")
        self.line("else:")
        self.indent += 1
        self.pending.append(("b", "1"))
        self.value(node.subcon, source)
        self.flush()
        self.indent -= 1

    def prefixed(self, node: Prefixed, source: str) -> None:
        if node.nullable:
            self.flush()
            self.line(f"if {source} is None: out({'UVARINTS[0]' if node.compact else repr(self.null(node))})")
            self.line("else:")
            self.indent += 1
        self.content(node, source)
        if node.nullable:
            self.flush()
            self.indent -= 1

    def null(self, node: Prefixed) -> bytes:
        return struct.pack(">" + prefix_code(node), -1)

    def content(self, node: Prefixed, source: str) -> None:
        if isinstance(node, KafkaArray):
            self.array(node, source)
            return
        data = self.name()
        self.line(f"{data} = {source}.encode()" if isinstance(node, KafkaString) else f"{data} = {source}")
        if isinstance(node, KafkaString) and node.compact:
            self.line(f"if len({data}) > {STRING_SIZE_MAX}: malformed()")
        self.length(node, f"len({data})")
        self.flush()
        self.line(f"out({data})")

    def length(self, node: Prefixed, length: str) -> None:
        if node.compact:
            self.flush()
            self.line(f"out(uvarint({length} + 1))")
        else:
            self.pending.append((prefix_code(node), length))

    def array(self, node: KafkaArray, source: str) -> None:
        count = self.name()
        element = node.element
        self.line(f"{count} = len({source})")
        if self.peel and isinstance(element, TypedStruct):
            before = list(self.pending)
            self.line(f"if {count} == 1:")
            self.indent += 1
            self.pending.append(("B", "2") if node.compact else (prefix_code(node), "1"))
            self.struct(element, f"{source}[0]")
            self.flush()
            self.indent -= 1
            self.line("else:")
            self.indent += 1
            self.pending = before
            self.many(node, count, source)
            self.indent -= 1
        else:
            self.many(node, count, source)

    def many(self, node: KafkaArray, count: str, source: str) -> None:
        self.length(node, count)
        self.flush()
        element = node.element
        code = fixed_code(element)
        if code is not None and code not in CHECKED:
            self.line(f"out(struct.pack(f'>{{{count}}}{code}', *{source}))")
        elif isinstance(element, TypedStruct) and self.flat(element):
            self.bulk(element, count, source)
        else:
            self.loop(element, source)

    def flat(self, node: TypedStruct) -> bool:
        """Whether every field is a number, so that many elements can be packed at once."""
        codes = [fixed_code(f.subcon) for f in node.subcon.subcons]
        return bool(codes) and all(c is not None and c not in CHECKED for c in codes) and not node.tags

    def bulk(self, node: TypedStruct, count: str, source: str) -> None:
        """Many flat elements: turn rows into columns, interleave the columns, pack once."""
        done, flat, columns = self.name(), self.name(), self.unpacked(node)
        codes = [str(fixed_code(f.subcon)) for f in node.subcon.subcons]
        picked = [columns[node.indices[f.name]] for f in node.subcon.subcons]
        plain = [f"not any({columns[-1]})"]
        plain += [f"{columns[index]}.count({self.constant(default)}) == {count}" for _, index, default in node.absent]
        if node.tags is not None:
            codes.append("B")  # no tags in any element: the zeros that the list is made of
        width = len(codes)
        self.line(f"{done} = False")
        self.line(f"if PACK_MIN <= {count} <= PACK_MAX:")
        self.line(f"    {', '.join(columns)}, = zip(*{source})")
        self.line(f"    if {' and '.join(plain)}:")
        self.line(f"        {flat} = [0] * ({count} * {width})")
        for place, column in enumerate(picked):
            self.line(f"        {flat}[{place}::{width}] = {column}")
        self.line(f"        out({self.module.packers(''.join(codes))}[{count}](*{flat}))")
        self.line(f"        {done} = True")
        self.line(f"if not {done}:")
        self.indent += 1
        self.loop(node, source)
        self.indent -= 1

    def loop(self, element: Construct, source: str) -> None:
        self.flush()
        if isinstance(element, TypedStruct):
            names = self.unpacked(element)
            self.line(f"for {', '.join(names)}, in {source}:")
            self.indent += 1
            self.fields(element, names)
        else:
            item = self.name()
            self.line(f"for {item} in {source}:")
            self.indent += 1
            self.value(element, item)
        self.flush()
        self.indent -= 1
