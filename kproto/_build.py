"""The build hook that adds generated codecs to the wheel (D14). Not part of the wheel itself.

A wheel has one module of codecs for each module of declarations. An editable install has none and generates codecs at
first use, so that a checkout never runs codecs older than its declarations.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CodecHook(BuildHookInterface[Any]):
    """The hook that hatchling calls while it builds a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate the modules into a temporary folder and add them to the wheel."""
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
        """Remove the temporary folder after the wheel is written."""
        if version != "editable":
            self._folder.cleanup()
