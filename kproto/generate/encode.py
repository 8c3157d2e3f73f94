"""Emit encoders.

Theory of operation. The emitter walks the construct tree in wire order, with the source expression of each value. A
struct is unpacked into one variable for each field. A fixed-size field emits nothing yet: it joins ``pending``, and
`flush` emits one ``pack`` for all of them; everything of variable size flushes first. In the generated code ``parts``
is the list of bytes objects that become the body, and ``out`` its ``append``. A message that declares ``has_slices``
has a second encoder, a generator that yields the body in pieces; its arrays may make their elements when asked for.

``struct`` checks the type and the range of numbers. What it does not check is checked by name: bools, UUIDs, the size
of compact strings, fields that the version lacks, and tags in a version without tag sections.
"""

from __future__ import annotations

import struct

from construct import Construct

from kproto.declaration import STRING_SIZE_MAX
from kproto.generate.emitter import Emitter
from kproto.generate.tree import fixed_code, prefix_code
from kproto.primitives import KafkaArray, KafkaString, NullableStruct, Prefixed, TypedStruct

CHECKED = {"16s": "check_uuid({})", "?": "check_bool({})"}
"""Struct codes for which ``struct`` accepts wrong values -> the expression that refuses them."""


SLICE_PARTS = 16_000
"""Bytes objects of one slice: about 2000 partitions of Metadata, which take 10 ms."""
SLICE_BYTES = 1 << 20
"""Bytes of one slice, if it has large strings or arrays of numbers."""
NUMBER_BYTES = 64
"""What an element counts for in an array of numbers, or of structs of numbers: a handler takes half a microsecond to
find and to sort it, as for as many bytes of strings."""


class EncoderEmitter(Emitter):
    """Emit writes. ``pending`` has the fixed-size fields that one pack will write, as (code, expression)."""

    in_slices = False
    """Whether the function is a generator that yields what is encoded so far between two elements of an array."""

    def flush(self) -> None:
        """Emit the write of all pending fields."""
        if self.pending:
            codes = "".join(code for code, _ in self.pending)
            expressions = ", ".join(expression for _, expression in self.pending)
            self.line(f"out({self.constants.pack(codes)}({expressions}))")
            self.pending = []

    def value(self, node: Construct, source: str) -> None:
        """Emit the write of the value of ``source``."""
        if (code := fixed_code(node)) is not None:
            self.pending.append((code, CHECKED.get(code, "{}").format(source)))
        elif isinstance(node, TypedStruct):
            self.struct(node, source)
        elif isinstance(node, NullableStruct):
            self._nullable_struct(node, source)
        else:
            assert isinstance(node, Prefixed)
            self._prefixed(node, source)

    def struct(self, node: TypedStruct, source: str) -> None:
        """Emit the write of a struct: one variable for each field, then the fields."""
        names = self._field_names(node)
        self.line(f"{', '.join(names)}, = {source}")
        self._fields(node, names)

    def _field_names(self, node: TypedStruct) -> list[str]:
        return [self.name() for _ in node.defaults]

    def _fields(self, node: TypedStruct, names: list[str]) -> None:
        for _, index, default in node.absent:
            self.line(f"if {names[index]} != {self.default(default)}: malformed()")
        if node.tags is None:
            self.line(f"if {names[-1]}: malformed()")
        for field in node.subcon.subcons:
            self.value(field.subcon, names[node.indices[field.name]])
        if node.tags is not None:
            self._tags(node, names)

    def _tags(self, node: TypedStruct, names: list[str]) -> None:
        """Emit the write of a tag section: the declared tags that differ from their default, and the unknown ones."""
        assert node.tags is not None
        self.flush()
        unknown = names[-1]
        if not node.tags:
            self.line(f"out(tag_section({unknown}, {{}}) if {unknown} else UVARINTS[0])")
            return
        contents = self.name()
        self.line(f"{contents} = {{}}")
        for number, known in node.tags.items():
            source = names[known.index]
            with self.block(f"if {source} != {self.default(known.default)}:"):
                # The content goes into a list of its own, because its size is written before it.
                outer = self.name()
                self.line(f"{outer} = out; parts_{outer} = []; out = parts_{outer}.append")
                self.value(known.subcon, source)
                self.flush()
                self.line(f"{contents}[{number}] = join(parts_{outer}); out = {outer}")
        self.line(f"out(tag_section({unknown}, {contents}) if {contents} or {unknown} else UVARINTS[0])")

    def _nullable_struct(self, node: NullableStruct, source: str) -> None:
        self.flush()
        self.line(f"if {source} is None: out(b'\\xff')")
        with self.block("else:"):
            self.pending.append(("b", "1"))
            self.value(node.subcon, source)
            self.flush()

    def _prefixed(self, node: Prefixed, source: str) -> None:
        """Emit the write of a string, bytes or array, which may be null."""
        if not node.nullable:
            self._content(node, source)
            return
        self.flush()
        null = "UVARINTS[0]" if node.compact else repr(struct.pack(">" + prefix_code(node), -1))
        self.line(f"if {source} is None: out({null})")
        with self.block("else:"):
            self._content(node, source)
            self.flush()

    def _content(self, node: Prefixed, source: str) -> None:
        if isinstance(node, KafkaArray):
            self._array(node, source)
            return
        data = self.name()
        self.line(f"{data} = {source}.encode()" if isinstance(node, KafkaString) else f"{data} = {source}")
        if isinstance(node, KafkaString) and node.compact:
            self.line(f"if len({data}) > {STRING_SIZE_MAX}: malformed()")
        self._length(node, f"len({data})")
        self.flush()
        self.line(f"out({data})")
        self._count(f"len({data})")

    def _count(self, size: str) -> None:
        """Count the bytes of something that may be large, for the size of a slice."""
        if self.in_slices:
            self.line(f"size += {size}")

    def _length(self, node: Prefixed, length: str) -> None:
        if node.compact:
            self.flush()
            self.line(f"out(uvarint({length} + 1))")
        else:
            self.pending.append((prefix_code(node), length))

    def _array(self, node: KafkaArray, source: str) -> None:
        """Emit an array; where one element is usual (``expect_one``), a second time for it, without a loop."""
        count = self.name()
        element = node.element
        self.line(f"{count} = len({source})")
        if not (self.expect_one and isinstance(element, TypedStruct)):
            self._elements(node, count, source)
            return
        pending = list(self.pending)  # both branches begin with these fields
        with self.block(f"if {count} == 1:"):
            self.pending.append(("B", "2") if node.compact else (prefix_code(node), "1"))
            self.struct(element, f"{source}[0]")
            self.flush()
        with self.block("else:"):
            self.pending = pending
            self._elements(node, count, source)

    def _elements(self, node: KafkaArray, count: str, source: str) -> None:
        """Emit count and elements: numbers by one pack, structs of numbers by columns, all others by a loop."""
        self._length(node, count)
        self.flush()
        element = node.element
        code = fixed_code(element)
        if code is not None and code not in CHECKED:
            self.line(f"out(struct.pack(f'>{{{count}}}{code}', *{source}))")
            self._count(f"{count} * {NUMBER_BYTES}")
        elif isinstance(element, TypedStruct) and self._only_numbers(element):
            self._bulk(element, count, source)
        else:
            self._loop(element, source)

    def _only_numbers(self, node: TypedStruct) -> bool:
        """Whether every field is a number and no tag is declared, so that many elements can be packed at once."""
        codes = [fixed_code(f.subcon) for f in node.subcon.subcons]
        return bool(codes) and all(c is not None and c not in CHECKED for c in codes) and not node.tags

    def _bulk(self, node: TypedStruct, count: str, source: str) -> None:
        """Emit many structs of numbers: turn rows into columns, interleave the columns, pack once.

        Falls back to the loop for a count outside of ``PACK_MIN`` to ``PACK_MAX``, and if an element has unknown tags
        or a value in a field that this version lacks: the loop writes the former and refuses the latter.
        """
        done, flat, columns = self.name(), self.name(), self._field_names(node)
        codes = [str(fixed_code(f.subcon)) for f in node.subcon.subcons]
        written = [columns[node.indices[f.name]] for f in node.subcon.subcons]
        conditions = [f"not any({columns[-1]})"]
        conditions += [
            f"{columns[index]}.count({self.default(default)}) == {count}" for _, index, default in node.absent
        ]
        if node.tags is not None:
            codes.append("B")  # an empty tag section; its zero comes from the list of zeros
        width = len(codes)
        self.line(f"{done} = False")
        with self.block(f"if PACK_MIN <= {count} <= PACK_MAX:"):
            self.line(f"{', '.join(columns)}, = zip(*{source})")
            with self.block(f"if {' and '.join(conditions)}:"):
                self.line(f"{flat} = [0] * ({count} * {width})")
                for index, column in enumerate(written):
                    self.line(f"{flat}[{index}::{width}] = {column}")
                self.line(f"out({self.constants.packers(''.join(codes))}[{count}](*{flat}))")
                self._count(f"{count} * {NUMBER_BYTES}")
                self.line(f"{done} = True")
        with self.block(f"if not {done}:"):
            self._loop(node, source)

    def _loop(self, element: Construct, source: str) -> None:
        names = self._field_names(element) if isinstance(element, TypedStruct) else [self.name()]
        targets = ", ".join(names) + ("," if isinstance(element, TypedStruct) else "")
        with self.block(f"for {targets} in {source}:"):
            if self.in_slices:
                condition = f"len(parts) > {SLICE_PARTS} or size > {SLICE_BYTES}"
                self.line(f"if {condition}: yield join(parts); parts.clear(); size = 0")
            if isinstance(element, TypedStruct):
                self._fields(element, names)
            else:
                self.value(element, names[0])
            self.flush()
