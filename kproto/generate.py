"""From a construct tree to Python source: the fast path, provably equal to the interpreted one.

Theory of operation. The generator walks the tree that `kproto.interpret.construct_of` makes and emits one straight
function per message, version and direction; nested structs and arrays are inlined. What makes it quick:

- Neighbouring fixed-size fields, and the length that follows them, are read or written by one ``struct`` call.
- An array of fixed-size elements is one ``iter_unpack``.
- An array whose elements have a string is first read as if it were the same in all of them: proven with a few counts
  over the bytes at a stride (`kproto.runtime.Alike`), then one ``iter_unpack`` too.
- Values are tuples, so that making one costs about as much as the ``struct`` result it is made of.

A generated function knows only right and wrong. What is wrong is told by the interpreted codec (`kproto.runtime`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from construct import Construct, FormatField

from kproto.interpret import construct_of
from kproto.primitives import (
    STRING_SIZE_MAX,
    Boolean,
    KafkaArray,
    KafkaBytes,
    KafkaString,
    NullableStruct,
    Octets16,
    Prefixed,
    TypedStruct,
)

if TYPE_CHECKING:
    from kproto.declaration import Message

PEELED = frozenset({8, 9})
"""API keys whose arrays often have one element and are met on the hot path: OffsetCommit, OffsetFetch."""

CHECKED = {"16s": "check_uuid({})", "?": "check_bool({})"}
"""How an encoder writes what struct would take any value for."""

PREAMBLE = """\
import struct
from kproto.declaration import TaggedField
from kproto.runtime import (Alike, FAILURES, PACK_MAX, PACK_MIN, Packers, SCAN_MIN, UVARINTS, check_bool, check_uuid,
    decode_failed, encode_failed, join, malformed, more_uvarint, new, read_uvarint, tag_section, unknown_tags, uvarint)
"""


def fixed_code(node: Construct) -> str | None:
    """Return the struct code of a fixed-size primitive, or None."""
    if isinstance(node, FormatField):
        return str(node.fmtstr[-1])
    if isinstance(node, Boolean):
        return "?"
    if isinstance(node, Octets16):
        return "16s"
    return None


def prefix_code(node: Prefixed) -> str:
    """Return the struct code of a length; a compact one is read as the single octet that it mostly is."""
    return "B" if node.prefix is None else str(node.prefix.fmtstr[-1])


def guessed_length(node: KafkaString, default: str | None) -> int | None:
    """Return the length that says null where that is the default; None: nothing to guess.

    An empty string is no guess: a member id is empty in a simple consumer's commit only.
    """
    if default is None and node.nullable:
        return 0 if node.compact else -1
    return None


def size_min(node: Construct) -> int:
    """Return the fewest octets that a value of this construct can have."""
    if (code := fixed_code(node)) is not None:
        return struct.calcsize(">" + code)
    if isinstance(node, Prefixed):
        return struct.calcsize(">" + prefix_code(node))
    if isinstance(node, NullableStruct):
        return 1
    assert isinstance(node, TypedStruct)
    return sum(size_min(f.subcon) for f in node.subcon.subcons) + (node.tags is not None)


class Emitter:
    """Lines of one function, names for its temporaries, and the module's constants."""

    def __init__(self, module: Module, *, peel: bool = False) -> None:
        self.module = module
        self.peel = peel
        """Whether an array of one element has code of its own, without a loop or a list."""
        self.lines: list[str] = []
        self.indent = 2
        self.count = 0
        self.pending: list[tuple[str, str]] = []

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def constant(self, value: Any) -> str:
        """A default as source; values that have no literal become constants of the module."""
        if isinstance(value, int | float | str | bytes | bool | type(None)):
            return repr(value)
        if value == () and type(value) is tuple:
            return "()"
        return self.module.constant(value)


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
        same = text.replace(f"{cls.__name__}, {version},", "")
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
