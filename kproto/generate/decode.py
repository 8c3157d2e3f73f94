"""Emit decoders.

Theory of operation. The emitter walks the construct tree in wire order. `value` returns the expression for a value, and
emits the lines that must run before it. A fixed-size field emits nothing yet: it joins ``pending``, and `flush` emits
one ``unpack_from`` for all of them. Everything of variable size flushes first. Two guesses make these runs longer:

- A string whose default is null is usually null, so its length is read together with the fields on both sides
  (``guesses``). A wrong guess reads the fields after the string again.
- In an API whose arrays usually have one element (``expect_one``), the count is read together with the first fields of
  the element. A wrong guess reads the count again and continues with the general code.

Both guesses only decide which code reads the bytes, never what is accepted: the fallback reads the same bytes from the
same position. In the generated code ``b`` is the buffer, ``p`` the position, ``size`` the length of the
buffer, and ``left`` how many more elements arrays and tag sections may have.

A read beyond the end fails in one of two ways: ``unpack_from`` and ``b[p]`` raise; slices return fewer bytes, so every
slice is followed, sooner or later, by a comparison of ``p`` with ``size`` (the last one ends the function).
"""

from __future__ import annotations

from typing import NamedTuple

from construct import Construct

from kproto.declaration import STRING_SIZE_MAX
from kproto.generate.constants import ModuleConstants
from kproto.generate.emitter import Emitter
from kproto.generate.rows import Row
from kproto.generate.tree import codes_size, default_length, fixed_code, prefix_code, size_min
from kproto.primitives import KafkaArray, KafkaString, NullableStruct, Prefixed, TypedStruct


class NullGuess(NamedTuple):
    """A string that is guessed to be null while its length is pending."""

    node: KafkaString
    target: str
    length: int
    """The length, as encoded, that confirms the guess."""


class OneElement(NamedTuple):
    """An array that is guessed to have one element while the element's first fields are pending."""

    counter: str
    """The variable of the count."""
    flag: str
    """The variable that says whether the guess is right."""


class DecoderEmitter(Emitter):
    """Emit reads. ``pending`` has the fixed-size fields that one unpack will read, as (code, target)."""

    def __init__(self, constants: ModuleConstants, *, expect_one: bool = False) -> None:
        super().__init__(constants, expect_one=expect_one)
        self.guesses: dict[int, NullGuess] = {}
        """Index in ``pending`` of the length of a string -> the guess."""
        self.one_element: OneElement | None = None

    def flush(self) -> None:
        """Emit the read of all pending fields."""
        if not self.pending:
            return
        if self.one_element is not None:
            self._flush_one_element(self.one_element)
        elif self.guesses:
            self._flush_guesses()
        else:
            self._unpack_pending()
            self.line(f"p += {self._pending_size()}")
            self.pending = []

    def _unpack_pending(self) -> None:
        targets = ", ".join(target for _, target in self.pending) + ("," if len(self.pending) == 1 else "")
        self.line(f"{targets} = {self.constants.unpack_from(self._pending_codes())}(b, p)")

    def _pending_codes(self) -> str:
        return "".join(code for code, _ in self.pending)

    def _pending_size(self) -> int:
        return codes_size(self._pending_codes())

    def _guesses_hold(self) -> list[str]:
        """Return the conditions under which the pending guesses are right."""
        return [f"{self.pending[index][1]} == {guess.length}" for index, guess in self.guesses.items()]

    def _flush_guesses(self) -> None:
        if max(self.guesses) == len(self.pending) - 1:
            # The last guess saves nothing: no field follows that could be read together with the length.
            guess, length = self.guesses.pop(max(self.guesses)), self.pending[-1][1]
            self.flush()
            self.content(guess.node, length, guess.target)
            return
        pending, guesses = self.pending, self.guesses
        self._unpack_pending()
        with self.block(f"if {' and '.join(self._guesses_hold())}:"):
            for guess in guesses.values():
                self.line(f"{guess.target} = None")
            self.line(f"p += {self._pending_size()}")
        with self.block("else:"):
            # ``p`` has not moved: read the same fields again, each string when its length is known.
            self.guesses = {}
            start = 0
            for index, guess in guesses.items():
                self.pending = pending[start : index + 1]
                self.flush()
                self.content(guess.node, pending[index][1], guess.target)
                start = index + 1
            self.pending = pending[start:]
            self.flush()

    def _flush_one_element(self, one: OneElement) -> None:
        """Read up to and into the only element of an array in one go, if the buffer has that many bytes.

        Leaves the emitter inside ``if flag:``; `_one_element_array` closes that block.
        """
        size, conditions, guesses = self._pending_size(), self._guesses_hold(), self.guesses
        compact = any(target == one.counter and code == "B" for code, target in self.pending)
        self.line(f"{one.flag} = p + {size} <= size")
        with self.block(f"if {one.flag}:"):
            self._unpack_pending()
            self.line(f"{one.flag} = {' and '.join([*conditions, f'{one.counter} == {2 if compact else 1}'])}")
        self.line(f"if {one.flag}:")
        self.indent += 1
        for guess in guesses.values():
            self.line(f"{guess.target} = None")
        self.line(f"p += {size}")
        self.pending, self.guesses, self.one_element = [], {}, None

    def value(self, node: Construct) -> str:
        """Emit the read of one value; return the expression for it, which is valid after `flush`."""
        if (code := fixed_code(node)) is not None:
            target = self.name()
            self.pending.append((code, target))
            return target
        if isinstance(node, TypedStruct):
            return self.struct(node)
        target = self.name()
        if isinstance(node, NullableStruct):
            self._nullable_struct(node, target)
        else:
            assert isinstance(node, Prefixed)
            self._prefixed(node, target)
        return target

    def struct(self, node: TypedStruct) -> str:
        """Emit the reads of all fields; return the expression that creates the value."""
        values = [self.default(default) for default in node.defaults]
        for field in node.subcon.subcons:
            guessable = isinstance(field.subcon, KafkaString) and field.name in node.cls._defaults
            read = (
                self._guess_null(field.subcon, node.cls._defaults[field.name])
                if guessable
                else self.value(field.subcon)
            )
            values[node.indices[field.name]] = read
        if node.tags is not None:
            self._tags(node, values)
        return f"new({self.constants.class_name(node.cls)}, ({', '.join(values)},))"

    def _guess_null(self, node: KafkaString, default: str | None) -> str:
        """Put off the read of a string that is probably null, so that the fields after it join the same unpack."""
        target = self.name()
        length = default_length(node, default)
        if length is None or self.one_element is not None:
            self._prefixed(node, target)
            return target
        self.guesses[len(self.pending)] = NullGuess(node, target, length)
        self.pending.append((prefix_code(node), self.name()))
        return target

    def _tags(self, node: TypedStruct, values: list[str]) -> None:
        """Emit the read of a tag section. Its count joins the pending fields: nearly always it is 0."""
        assert node.tags is not None
        count, unknown = self.name(), self.name()
        self.pending.append(("B", count))
        self.flush()
        values[-1] = unknown
        if not node.tags:
            self.line(f"if {count}: {unknown}, p, left = unknown_tags(b, p, {count}, left)")
            self.line(f"else: {unknown} = ()")
            return
        targets = {number: self.name() for number in node.tags}
        for number, known in node.tags.items():
            values[known.index] = targets[number]
            self.line(f"{targets[number]} = {self.default(known.default)}")
        self.line(f"if not {count}: {unknown} = ()")
        with self.block("else:"):
            self.line(f"if {count} > 127: {count}, p = more_uvarint(b, p, {count})")
            self.line(f"if (left := left - {count}) < 0: too_many_elements()")
            self.line(f"{unknown} = []")
            number_name, end = self.name(), self.name()
            with self.block(f"for _ in range({count}):"):
                self.line(f"{number_name}, p = read_uvarint(b, p)")
                self.line(f"{end}, p = read_uvarint(b, p)")
                self.line(f"{end} += p")
                for index, (number, known) in enumerate(node.tags.items()):
                    with self.block(f"{'el' if index else ''}if {number_name} == {number}:"):
                        expression = self.value(known.subcon)
                        self.flush()
                        self.line(f"{targets[number]} = {expression}")
                        self.line(f"if p != {end}: malformed()")
                with self.block("else:"):
                    self.line(f"if {end} > size: malformed()")
                    self.line(f"{unknown}.append(TaggedField({number_name}, b[p:{end}]))")
                    self.line(f"p = {end}")
            self.line(f"{unknown} = tuple({unknown})")

    def _nullable_struct(self, node: NullableStruct, target: str) -> None:
        present = self.name()
        self.pending.append(("b", present))
        self.flush()
        self.line(f"if {present} < 0: {target} = None")
        with self.block("else:"):
            expression = self.value(node.subcon)
            self.flush()
            self.line(f"{target} = {expression}")

    def _prefixed(self, node: Prefixed, target: str) -> None:
        """Emit the read of a string, bytes or array: its length with the pending fields, then its content."""
        length = self.name()
        struct_array = isinstance(node, KafkaArray) and isinstance(node.element, TypedStruct)
        if self.expect_one and self.one_element is None and struct_array:
            self._one_element_array(node, length, target)
            return
        self.pending.append((prefix_code(node), length))
        self.flush()
        self.content(node, length, target)

    def _one_element_array(self, node: KafkaArray, count: str, target: str) -> None:
        """Emit an array twice: for one element, without a loop or a list, and for any other count."""
        pending, guesses = [*self.pending, (prefix_code(node), count)], dict(self.guesses)
        outer = self.indent
        self.one_element = OneElement(count, self.name())
        flag = self.one_element.flag
        self.pending.append(pending[-1])
        expression = self.value(node.element)
        self.flush()
        self.line(f"{target} = ({expression},)")
        self.indent = outer  # `_flush_one_element` left the emitter inside ``if flag:``
        with self.block(f"if not {flag}:"):
            self.pending, self.guesses = pending, guesses
            self.flush()
            self.content(node, count, target)

    def content(self, node: Prefixed, length: str, target: str) -> None:
        """Emit the read of what follows a length that has been read; handle long compact lengths and null."""
        if node.compact:
            # One byte has been read. Its high bit says that the varint continues, which is rare.
            self.line(f"if {length} > 127: {length}, p = more_uvarint(b, p, {length})")
            if isinstance(node, KafkaString):
                self.lines[-1] += f"; {length} <= {STRING_SIZE_MAX + 1} or malformed()"
            self.line(f"{length} -= 1")
        if isinstance(node, KafkaString):
            # No comparison with ``size``: a cut string moves ``p`` beyond the end, where the next read fails.
            self.line(f"if {length} > 0: {target} = b[p : (p := p + {length})].decode()")
            self.line(f"elif {length}: {f'{target} = None' if node.nullable else 'malformed()'}")
            self.line(f"else: {target} = ''")
            return
        if not node.nullable:
            self.line(f"if {length} < 0: malformed()")
            self._body(node, length, target)
            return
        self.line(f"if {length} < 0: {target} = None")
        with self.block("else:"):
            self._body(node, length, target)

    def _body(self, node: Prefixed, length: str, target: str) -> None:
        if isinstance(node, KafkaArray):
            self._array(node.element, length, target)
        else:
            self.line(f"{target} = b[p : (p := p + {length})]")
            self.line("if p > size: malformed()")

    def _array(self, element: Construct, count: str, target: str) -> None:
        """Emit the read of ``count`` elements, the fastest way that fits the element.

        Every way compares the count with the bytes that are left before it allocates: a hostile count of 2**31 must
        cost nothing.
        """
        self.line(f"if (left := left - {count}) < 0: too_many_elements()")
        least = max(1, size_min(element))
        if (code := fixed_code(element)) is not None:
            self.line(f"if {count} * {least} > size - p: malformed()")
            codes = f"'>' + '16s' * {count}" if code == "16s" else f"f'>{{{count}}}{code}'"
            self.line(f"{target} = struct.unpack_from({codes}, b, p)")
            self.line(f"p += {count} * {least}")
            return
        row = Row.of(element, self) if isinstance(element, TypedStruct) else None
        if row is not None and row.fixed:
            end = self.name()
            self.line(f"{end} = p + {count} * {least}")
            self.line(f"if {end} > size: malformed()")
            rows = f"{self.constants.iter_unpack(row.before)}(b[p:{end}])"
            self.line(f"{target} = {row.uniform_expression(rows)}")
            self.line(f"p = {end}")
        elif row is not None:
            self._bulk(row, element, count, target)
        else:
            self._loop(element, count, target)

    def _bulk(self, row: Row, element: Construct, count: str, target: str) -> None:
        """Emit three ways to read elements with a string: all strings empty, all equal, one by one.

        One byte of the first element decides between the first two. Each leaves ``target`` None if its assumption
        turns out wrong, with ``p`` unmoved, and the loop reads the elements.
        """
        found = self.name()
        self.line(f"{target} = None")
        with self.block(f"if {count} >= BULK_READ_MIN:"):
            position, byte = row.first_expected
            with self.block(f"if b[p + {position}] == {byte}:"):
                self.line(f"{target} = {row.empty_expression(f'b[p : p + {count} * {row.empty_size}]')}")
                self.line(f"if len({target}) == {count}: p += {count} * {row.empty_size}")
                self.line(f"else: {target} = None")
            if row.prefix:
                with self.block(f"elif {found} := {row.uniform_array}(b, p, {count}):"):
                    self.line(f"{found}, {row.string}, p = {found}")
                    self.line(f"{target} = {row.uniform_expression(found)}")
        with self.block(f"if {target} is None:"):
            self._loop(element, count, target)

    def _loop(self, element: Construct, count: str, target: str) -> None:
        """Emit a read of the elements one by one.

        A hostile count ends at the first element beyond the end of the buffer: reading an element of one or more bytes
        raises there. Only for an element without bytes the count is compared first.
        """
        items = self.name()
        if size_min(element) == 0:
            self.line(f"if {count} > size - p: malformed()")
        self.line(f"{items} = []")
        with self.block(f"for _ in range({count}):"):
            expression = self.value(element)
            self.flush()
            self.line(f"{items}.append({expression})")
        self.line(f"{target} = tuple({items})")
