"""YAML files of users: read with one line of text for what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_yaml(path: str) -> Any:
    """Return the content of a YAML file; None: it is empty.

    Raises:
        UsageError: the file can't be read, is no YAML, or has a name twice; the text has the line.
    """
    import yaml  # it takes 20 ms

    try:
        with open(path, "rb") as file:
            return yaml.load(file, Loader=_loader())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(f"{path}: line {line}: {error.problem or error.context}") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"{path}: no YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise UsageError(f"{path}: it is nested too deeply") from None


def _loader() -> Any:
    """Return a safe loader that refuses a name which a mapping has twice."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
        def construct_mapping(self, node: Any, deep: bool = False) -> Mapping[Any, Any]:
            names = [key.value for key, _ in node.value]
            for key, _ in node.value:
                if names.count(key.value) > 1:
                    raise yaml.MarkedYAMLError(problem=f"{key.value!r} is there twice", problem_mark=key.start_mark)
            found: Mapping[Any, Any] = super().construct_mapping(node, deep)
            return found

    return Loader
