"""The build's part: generated codecs for the wheel (D14). Not part of the wheel itself.

A wheel gets one module of codecs for each module of declarations; an editable install gets none, and generates what it
needs at first use, so that a checkout never runs codecs older than its declarations.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CodecHook(BuildHookInterface[Any]):
    """Called by hatchling while it builds a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the generated modules; the tree stays as it is."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from kproto.generate.shipping import generated_sources

        self._folder = tempfile.TemporaryDirectory()
        for name, source in generated_sources().items():
            path = Path(self._folder.name, name)
            path.write_text(source)
            build_data["force_include"][str(path)] = f"kproto/_generated/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The wheel is written: the folder can go."""
        if version != "editable":
            self._folder.cleanup()
