"""Array elements that can be read in bulk: rows of fixed-size columns with at most one string among them."""

from __future__ import annotations

from typing import NamedTuple

from construct import Construct

from kproto.generate.emitter import Emitter
from kproto.generate.tree import codes_size, fixed_code, prefix_code
from kproto.primitives import KafkaBytes, KafkaString, TypedStruct

STRING = "<string>"
"""Stands for the string in `Row.expression`, because the two bulk reads obtain the string in different ways."""


class Column(NamedTuple):
    """A fixed-size field of an element whose string and tag sections are empty."""

    code: str
    name: str
    expected: int | None
    """The number that the field must have, for the length of the string and the counts of tags; else None."""


class Row:
    """One array element, seen as a row in two ways.

    If the string and the tag sections of all elements are empty, an element is a row of ``columns``. If all elements
    contain the same string, `kproto.runtime.UniformArray` reads rows of ``targets``: the declared fixed-size fields.
    ``before`` and ``after`` are the struct codes on both sides of the string, where a tag count is padding ("x").
    """

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self.before = ""
        self.after = ""
        self.prefix = ""
        """Struct code of the string's length; "" if the element has no string."""
        self.kind = ""
        self.string = ""
        self.nullable = False
        self.targets: list[str] = []
        self.columns: list[Column] = []
        self.tags_before: list[int] = []
        self.tags_after: list[int] = []
        self.expression = ""
        """Creates the element from the columns or targets."""

    @classmethod
    def of(cls, element: TypedStruct, emitter: Emitter) -> Row | None:
        """Return the row of an element; None if the element has arrays, two strings, or no fixed-size field."""
        row = cls(emitter)
        expression = row._add_struct(element)
        if expression is None or not row.targets:
            return None
        row.expression = expression
        return row

    @property
    def fixed(self) -> bool:
        """Whether every element has the same size, whatever it contains."""
        return not self.prefix and not self.tags_before

    @property
    def empty_size(self) -> int:
        """Bytes of an element whose string and tag sections are empty."""
        return codes_size("".join(column.code for column in self.columns))

    @property
    def first_expected(self) -> tuple[int, int]:
        """The position of a byte in an element, and its value if the element is empty: the cheapest precheck."""
        position = 0
        for column in self.columns:
            position += codes_size(column.code)
            if column.expected is not None:
                return position - 1, column.expected  # the last byte decides: the number is 0 or 1
        raise AssertionError("a row without string and tags needs no check")

    @property
    def uniform_array(self) -> str:
        """The name of the `kproto.runtime.UniformArray` that reads these elements."""
        after_size = codes_size(self.after)
        zeros = (*self.tags_before, *(position - after_size for position in self.tags_after))
        arguments = (self.before, self.prefix, self.kind, self.after, zeros, self.nullable)
        return self._emitter.constants.uniform_array(arguments)

    def _add(self, node: Construct) -> str | None:
        """Add the columns of a node; return the expression for its value, or None if it does not fit into a row."""
        if (code := fixed_code(node)) is not None:
            self.targets.append(self._emitter.name())
            self.columns.append(Column(code, self.targets[-1], None))
            self._put(code)
            return self.targets[-1]
        if isinstance(node, KafkaString | KafkaBytes) and not self.prefix:
            self.prefix = prefix_code(node)
            self.kind = "str" if isinstance(node, KafkaString) else "bytes"
            self.nullable = node.nullable
            self.string = self._emitter.name()
            self.columns.append(Column(self.prefix, self._emitter.name(), 1 if node.compact else 0))
            return STRING
        if isinstance(node, TypedStruct):
            return self._add_struct(node)
        return None

    def _put(self, code: str) -> None:
        if self.prefix:
            self.after += code
        else:
            self.before += code

    def _add_struct(self, node: TypedStruct) -> str | None:
        values = [self._emitter.default(default) for default in node.defaults]
        for field in node.subcon.subcons:
            expression = self._add(field.subcon)
            if expression is None:
                return None
            values[node.indices[field.name]] = expression
        if node.tags is not None:
            codes, positions = (self.after, self.tags_after) if self.prefix else (self.before, self.tags_before)
            positions.append(codes_size(codes))
            self.columns.append(Column("B", self._emitter.name(), 0))
            self._put("x")
        return f"new({self._emitter.constants.class_name(node.cls)}, ({', '.join(values)},))"

    def uniform_expression(self, rows: str) -> str:
        """Return the expression for the array, from rows of ``targets``; the string is already in its variable."""
        targets = ", ".join(self.targets) + ("," if len(self.targets) == 1 else "")
        return f"tuple([{self.expression.replace(STRING, self.string)} for {targets} in {rows}])"

    def empty_expression(self, chunk: str) -> str:
        """Return the expression for the array, read as if every string and tag section were empty.

        A row that breaks the assumption is left out, so the result has as many elements as the array only if the
        assumption is true: if an element is longer, the rows after it are misaligned, but it is missing itself.
        """
        names = ", ".join(column.name for column in self.columns)
        checks = " and ".join(
            f"{column.name} == {column.expected}" if column.expected else f"not {column.name}"
            for column in self.columns
            if column.expected is not None
        )
        rows = self._emitter.constants.iter_unpack("".join(column.code for column in self.columns))
        expression = self.expression.replace(STRING, "''" if self.kind == "str" else "b''")
        return f"tuple([{expression} for {names}, in {rows}({chunk}) if {checks}])"
