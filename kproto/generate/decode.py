"""Emit decoders."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from construct import Construct

from kproto.generate.emitter import Emitter
from kproto.generate.rows import Row
from kproto.generate.tree import fixed_code, guessed_length, prefix_code, size_min
from kproto.primitives import (
    STRING_SIZE_MAX,
    KafkaArray,
    KafkaString,
    NullableStruct,
    Prefixed,
    TypedStruct,
)

if TYPE_CHECKING:
    from kproto.generate.module import Module


class DecoderEmitter(Emitter):
    """Emit reads. ``pending`` holds (code, target) of fixed fields that one unpack will fill.

    A string whose default is null is guessed to be that, so that what stands before and behind it is one
    unpack: ``guesses`` has, by place in ``pending``, the string whose length stands there. A wrong guess reads again.
    """

    def __init__(self, module: Module, *, peel: bool = False) -> None:
        super().__init__(module, peel=peel)
        self.guesses: dict[int, tuple[KafkaString, str, Any]] = {}
        self.single: tuple[str, str] | None = None
        """An array guessed to have one element, whose first fields are being collected: (name of its count, flag)."""

    def flush(self) -> None:
        if not self.pending:
            return
        if self.single is not None:
            self.flush_single(*self.single)
            return
        if self.guesses:
            self.flush_guesses()
            return
        codes = "".join(code for code, _ in self.pending)
        targets = "".join(f"{target}, " for _, target in self.pending)
        self.line(f"{targets.rstrip() if len(self.pending) == 1 else targets[:-2]} = {self.module.unpack(codes)}(b, p)")
        self.line(f"p += {struct.calcsize('>' + codes)}")
        self.pending = []

    def flush_guesses(self) -> None:
        pending, guesses = self.pending, self.guesses
        self.guesses = {}
        if max(guesses) == len(pending) - 1:  # nothing behind the last one to be read with it
            (node, target, _), length = guesses.pop(max(guesses)), pending[-1][1]
            self.guesses = guesses
            self.flush()
            self.content(node, length, target)
            return
        codes = "".join(code for code, _ in pending)
        right = " and ".join(
            f"{pending[place][1]} == {guessed_length(node, default)}" for place, (node, _, default) in guesses.items()
        )
        self.line(f"{', '.join(target for _, target in pending)} = {self.module.unpack(codes)}(b, p)")
        self.line(f"if {right}:")
        for _, target, default in guesses.values():
            self.line(f"    {target} = {default!r}")
        self.line(f"    p += {struct.calcsize('>' + codes)}")
        self.line("else:")
        self.indent += 1
        start = 0
        for place, (node, target, _) in guesses.items():
            self.pending = pending[start : place + 1]
            self.flush()
            self.content(node, pending[place][1], target)
            start = place + 1
        self.pending = pending[start:]
        self.flush()
        self.indent -= 1

    def flush_single(self, count: str, flag: str) -> None:
        """Read up to and into an array's first element at once, if so much is there; go on inside ``if flag``."""
        pending, guesses = self.pending, self.guesses
        self.pending, self.guesses, self.single = [], {}, None
        codes = "".join(code for code, _ in pending)
        size = struct.calcsize(">" + codes)
        right = [f"{pending[place][1]} == {guessed_length(node, value)}" for place, (node, _, value) in guesses.items()]
        compact = any(target == count and code == "B" for code, target in pending)
        self.line(f"{flag} = p + {size} <= size")
        self.line(f"if {flag}:")
        self.line(f"    {', '.join(target for _, target in pending)} = {self.module.unpack(codes)}(b, p)")
        self.line(f"    {flag} = {' and '.join([*right, f'{count} == {2 if compact else 1}'])}")
        self.line(f"if {flag}:")
        self.indent += 1
        for _, target, default in guesses.values():
            self.line(f"{target} = {default!r}")
        self.line(f"p += {size}")

    def value(self, node: Construct) -> str:
        """Emit the read of one value; return the expression for it, valid once everything is flushed."""
        if (code := fixed_code(node)) is not None:
            target = self.name()
            self.pending.append((code, target))
            return target
        if isinstance(node, TypedStruct):
            return self.struct(node)
        target = self.name()
        if isinstance(node, NullableStruct):
            self.nullable_struct(node, target)
        else:
            assert isinstance(node, Prefixed)
            self.prefixed(node, target)
        return target

    def struct(self, node: TypedStruct) -> str:
        values = [self.constant(default) for default in node.defaults]
        for field in node.subcon.subcons:
            guessed = isinstance(field.subcon, KafkaString) and field.name in node.cls._defaults
            read = self.guess(field.subcon, node.cls._defaults[field.name]) if guessed else self.value(field.subcon)
            values[node.indices[field.name]] = read
        if node.tags is not None:
            self.tags(node, values)
        return f"new({self.module.cls(node.cls)}, ({', '.join(values)},))"

    def guess(self, node: KafkaString, default: str | None) -> str:
        """Read a string that is likely to be its default: put off until it is known what stands behind it."""
        target = self.name()
        if guessed_length(node, default) is None or self.single is not None:
            self.prefixed(node, target)
            return target
        self.guesses[len(self.pending)] = (node, target, default)
        self.pending.append((prefix_code(node), self.name()))
        return target

    def tags(self, node: TypedStruct, values: list[str]) -> None:
        assert node.tags is not None
        count, unknown = self.name(), self.name()
        self.pending.append(("B", count))
        self.flush()
        values[-1] = unknown
        if not node.tags:
            self.line(f"if {count}: {unknown}, p = unknown_tags(b, p, {count})")
            self.line(f"else: {unknown} = ()")
            return
        targets = {number: self.name() for number in node.tags}
        for number, known in node.tags.items():
            values[known.index] = targets[number]
            self.line(f"{targets[number]} = {self.constant(known.default)}")
        self.line(f"if not {count}: {unknown} = ()")
        self.line("else:")
        self.indent += 1
        self.line(f"if {count} > 127: {count}, p = more_uvarint(b, p, {count})")
        self.line(f"{unknown} = []")
        number_name, end = self.name(), self.name()
        self.line(f"for _ in range({count}):")
        self.indent += 1
        self.line(f"{number_name}, p = read_uvarint(b, p)")
        self.line(f"{end}, p = read_uvarint(b, p)")
        self.line(f"{end} += p")
        for index, (number, known) in enumerate(node.tags.items()):
            self.line(f"{'el' if index else ''}if {number_name} == {number}:")
            self.indent += 1
            expression = self.value(known.subcon)
            self.flush()
            self.line(f"{targets[number]} = {expression}")
            self.line(f"if p != {end}: malformed()")
            self.indent -= 1
        self.line("else:")
        self.line(f"    if {end} > size: malformed()")
        self.line(f"    {unknown}.append(TaggedField({number_name}, b[p:{end}]))")
        self.line(f"    p = {end}")
        self.indent -= 1
        self.line(f"{unknown} = tuple({unknown})")
        self.indent -= 1

    def nullable_struct(self, node: NullableStruct, target: str) -> None:
        present = self.name()
        self.pending.append(("b", present))
        self.flush()
        self.line(f"if {present} < 0: {target} = None")
        self.line("else:")
        self.indent += 1
        expression = self.value(node.subcon)
        self.flush()
        self.line(f"{target} = {expression}")
        self.indent -= 1

    def prefixed(self, node: Prefixed, target: str) -> None:
        length = self.name()
        if self.peel and self.single is None and isinstance(node, KafkaArray) and isinstance(node.element, TypedStruct):
            self.peeled(node, length, target)
            return
        self.pending.append((prefix_code(node), length))
        self.flush()
        self.content(node, length, target)

    def peeled(self, node: KafkaArray, count: str, target: str) -> None:
        """An array that mostly has one element: guess that, without a loop or a list; else read the count again."""
        pending, guesses = [*self.pending, (prefix_code(node), count)], dict(self.guesses)
        outer = self.indent
        self.single = (count, self.name())
        flag = self.single[1]
        self.pending.append(pending[-1])
        expression = self.value(node.element)
        self.flush()
        self.line(f"{target} = ({expression},)")
        self.indent = outer
        self.line(f"if not {flag}:")
        self.indent += 1
        self.pending, self.guesses = pending, guesses
        self.flush()
        self.content(node, count, target)
        self.indent -= 1

    def content(self, node: Prefixed, length: str, target: str) -> None:
        """Emit the read of what follows a length that has been read."""
        if node.compact:
            self.line(f"if {length} > 127: {length}, p = more_uvarint(b, p, {length})")
            if isinstance(node, KafkaString):
                self.lines[-1] += f"; {length} <= {STRING_SIZE_MAX + 1} or malformed()"
            self.line(f"{length} -= 1")
        if node.nullable:
            self.line(f"if {length} < 0: {target} = None")
            self.line("else:")
            self.indent += 1
        else:
            self.line(f"if {length} < 0: malformed()")
        self.body(node, length, target)
        if node.nullable:
            self.indent -= 1

    def body(self, node: Prefixed, length: str, target: str) -> None:
        if isinstance(node, KafkaArray):
            self.array(node.element, length, target)
            return
        decode = ".decode()" if isinstance(node, KafkaString) else ""
        if decode:
            self.line(f"if not {length}: {target} = ''")
            self.line("else:")
            self.indent += 1
        end = self.name()
        self.line(f"{end} = p + {length}")
        self.line(f"{target} = b[p:{end}]{decode}")
        self.line(f"p = {end}")
        if not decode:
            self.line("if p > size: malformed()")
        else:
            self.indent -= 1

    def array(self, element: Construct, count: str, target: str) -> None:
        least = max(1, size_min(element))
        if (code := fixed_code(element)) is not None:
            self.line(f"if {count} * {least} > size - p: malformed()")
            self.line(f"{target} = struct.unpack_from(f'>{{{count}}}{code}', b, p)" if code != "16s" else
                      f"{target} = struct.unpack_from('>' + '16s' * {count}, b, p)")  # fmt: skip
            self.line(f"p += {count} * {least}")
            return
        row = Row.of(element, self) if isinstance(element, TypedStruct) else None
        if row is not None and row.fixed:
            end = self.name()
            self.line(f"{end} = p + {count} * {least}")
            self.line(f"if {end} > size: malformed()")
            self.line(f"{target} = {row.if_alike(f'{self.module.iter_unpack(row.before)}(b[p:{end}])')}")
            self.line(f"p = {end}")
        elif row is not None:
            self.alike(row, element, count, target)
        else:
            self.loop(element, count, target)

    def alike(self, row: Row, element: Construct, count: str, target: str) -> None:
        """Many elements: in bulk if their strings are all empty, or else alike; one by one if not."""
        found = self.name()
        self.line(f"{target} = None")
        self.line(f"if {count} >= SCAN_MIN:")
        self.indent += 1
        place, octet = row.first_check
        self.line(f"if b[p + {place}] == {octet}:")
        self.line(f"    {target} = {row.if_empty(self.module, f'b[p : p + {count} * {row.size}]')}")
        self.line(f"    if len({target}) == {count}: p += {count} * {row.size}")
        self.line(f"    else: {target} = None")
        if row.prefix:
            self.line(f"elif {found} := {self.module.alike(row)}(b, p, {count}):")
            self.line(f"    {found}, {row.string}, p = {found}")
            self.line(f"    {target} = {row.if_alike(found)}")
        self.indent -= 1
        self.line(f"if {target} is None:")
        self.indent += 1
        self.loop(element, count, target)
        self.indent -= 1

    def loop(self, element: Construct, count: str, target: str) -> None:
        """One by one. A hostile count ends at the first element that is not there: each takes at least an octet."""
        items = self.name()
        if size_min(element) == 0:
            self.line(f"if {count} > size - p: malformed()")
        self.line(f"{items} = []")
        self.line(f"for _ in range({count}):")
        self.indent += 1
        expression = self.value(element)
        self.flush()
        self.line(f"{items}.append({expression})")
        self.indent -= 1
        self.line(f"{target} = tuple({items})")
