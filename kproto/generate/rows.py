"""Array elements that are read in bulk."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from construct import Construct

from kproto.generate.tree import fixed_code, prefix_code
from kproto.primitives import (
    KafkaBytes,
    KafkaString,
    TypedStruct,
)

if TYPE_CHECKING:
    from kproto.generate.emitter import Emitter
    from kproto.generate.module import Module

STRING = "<string>"
"""Stands for the string in the expression that makes an element, until it is known how the string is read."""


class Row:
    """An array element of fixed fields with at most one string among them, read in bulk.

    If all strings and tag sections are empty, an element is a row of ``columns``: struct code, name, and the number
    that a length or tag count must be. If the strings are only alike, `kproto.runtime.Alike` reads ``targets``.
    """

    def __init__(self) -> None:
        self.before = ""
        self.prefix = ""
        self.kind = ""
        self.after = ""
        self.string = ""
        self.nullable = False
        self.targets: list[str] = []
        self.columns: list[tuple[str, str, int | None]] = []
        self.tags_before: list[int] = []
        self.tags_after: list[int] = []
        self.expression = ""

    @classmethod
    def of(cls, element: TypedStruct, emitter: Emitter) -> Row | None:
        row = cls()
        expression = row.add(element, emitter)
        if expression is None or not row.targets:
            return None
        row.expression = expression
        return row

    @property
    def fixed(self) -> bool:
        return not self.prefix and not self.tags_before

    @property
    def size(self) -> int:
        """Octets of an element whose string and tags are empty."""
        return struct.calcsize(">" + "".join(code for code, _, _ in self.columns))

    @property
    def first_check(self) -> tuple[int, int]:
        """The place in an element, and the octet there, that tell most quickly whether it is likely to be empty."""
        position = 0
        for code, _, number in self.columns:
            position += struct.calcsize(">" + code)
            if number is not None:
                return position - 1, number
        raise AssertionError("an element of fixed fields needs no check")

    @property
    def zeros(self) -> tuple[int, ...]:
        """Where an element's empty tag sections stand: from its start, or, behind the string, from its end."""
        size = struct.calcsize(">" + self.after)
        return (*self.tags_before, *(place - size for place in self.tags_after))

    def add(self, node: Construct, emitter: Emitter) -> str | None:
        if (code := fixed_code(node)) is not None:
            self.targets.append(emitter.name())
            self.columns.append((code, self.targets[-1], None))
            self.put(code)
            return self.targets[-1]
        if isinstance(node, KafkaString | KafkaBytes) and not self.prefix:
            self.prefix = prefix_code(node)
            self.kind = "str" if isinstance(node, KafkaString) else "bytes"
            self.nullable = node.nullable
            self.string = emitter.name()
            self.columns.append((self.prefix, emitter.name(), 1 if node.compact else 0))
            return STRING
        if isinstance(node, TypedStruct):
            return self.add_struct(node, emitter)
        return None

    def put(self, code: str) -> None:
        if self.prefix:
            self.after += code
        else:
            self.before += code

    def add_struct(self, node: TypedStruct, emitter: Emitter) -> str | None:
        values = [emitter.constant(default) for default in node.defaults]
        for field in node.subcon.subcons:
            expression = self.add(field.subcon, emitter)
            if expression is None:
                return None
            values[node.indices[field.name]] = expression
        if node.tags is not None:
            codes, places = (self.after, self.tags_after) if self.prefix else (self.before, self.tags_before)
            places.append(struct.calcsize(">" + codes))
            self.columns.append(("B", emitter.name(), 0))
            self.put("x")
        return f"new({emitter.module.cls(node.cls)}, ({', '.join(values)},))"

    def if_alike(self, rows: str) -> str:
        """The array, from rows of ``targets``; the string has its name already."""
        targets = ", ".join(self.targets) + ("," if len(self.targets) == 1 else "")
        return f"tuple([{self.expression.replace(STRING, self.string)} for {targets} in {rows}])"

    def if_empty(self, module: Module, chunk: str) -> str:
        """The elements with an empty string and no tags, read as if all were: as many as there are if it is true."""
        names = ", ".join(name for _, name, _ in self.columns)
        checks = " and ".join(
            f"{name} == {number}" if number else f"not {name}" for _, name, number in self.columns if number is not None
        )
        rows = module.iter_unpack("".join(code for code, _, _ in self.columns))
        expression = self.expression.replace(STRING, "''" if self.kind == "str" else "b''")
        return f"tuple([{expression} for {names}, in {rows}({chunk}) if {checks}])"
