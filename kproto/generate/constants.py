"""The constants of a generated module: compiled structs, bulk readers, classes and defaults, each defined once."""

from __future__ import annotations

from typing import Any


class ModuleConstants:
    """Gives a name to each constant that generated functions need, and the lines that define them.

    Every method returns the name; equal constants share one.
    """

    def __init__(self) -> None:
        self.classes: dict[str, type[Any]] = {}
        """Name -> class to import."""
        self._names: dict[str, str] = {}
        """Expression -> name."""

    def definitions(self) -> list[str]:
        """Return one assignment for each constant."""
        return [f"{name} = {expression}" for expression, name in self._names.items()]

    def class_name(self, cls: type[Any]) -> str:
        """Import a declared class."""
        self.classes[cls.__name__] = cls
        return cls.__name__

    def unpack_from(self, codes: str) -> str:
        """Read neighboring fixed-size fields."""
        return self._struct_method(codes, "unpack_from")

    def iter_unpack(self, codes: str) -> str:
        """Read many rows of fixed-size fields."""
        return self._struct_method(codes, "iter_unpack")

    def pack(self, codes: str) -> str:
        """Write neighboring fixed-size fields."""
        return self._struct_method(codes, "pack")

    def packers(self, codes: str) -> str:
        """Write many rows of fixed-size fields at once (`kproto.runtime.Packers`)."""
        return self._name(f"packers_{_identifier(codes)}", f"Packers({codes!r})")

    def uniform_array(self, arguments: tuple[Any, ...]) -> str:
        """Read many elements with the same string (`kproto.runtime.UniformArray`)."""
        return self._name(f"uniform_{len(self._names)}", f"UniformArray{arguments!r}")

    def default(self, value: Any) -> str:
        """Return a default as source: a literal, or the name of a struct that its class's own defaults make."""
        if isinstance(value, int | float | str | bytes | bool | type(None)):
            return repr(value)
        if value == () and type(value) is tuple:
            return "()"
        cls = type(value)
        assert value == cls(), f"the default of a {cls.__name__} field is {cls.__name__}()"
        return self._name(f"DEFAULT_{cls.__name__}", f"{self.class_name(cls)}()")

    def _struct_method(self, codes: str, method: str) -> str:
        return self._name(f"{method}_{_identifier(codes)}", f"struct.Struct('>{codes}').{method}")

    def _name(self, name: str, expression: str) -> str:
        return self._names.setdefault(expression, name)


def _identifier(codes: str) -> str:
    return codes.replace("?", "_")
