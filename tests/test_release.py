"""The zip application names the Python that it is for.

Method. Its main program is made as a build makes it, and run as if another version of Python ran it.
"""

from __future__ import annotations

import re
import runpy
import sys
import sysconfig
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parent.parent / "server" / "release" / "build.py"


def test_another_python_is_refused_by_the_name_of_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = runpy.run_path(str(BUILD))["pyz_main"]("0123456789abcdef")
    assert not re.findall(r'"\{[A-Z]+\}"', source)
    program = tmp_path / "__main__.py"
    program.write_text(source)
    major, minor = sys.version_info[:2]
    monkeypatch.setattr(sys, "version_info", (2, 7, 18))
    platform = sysconfig.get_platform()
    expected = f"kproto: this file is for Python {major}.{minor} on {platform}, not for Python 2.7 on {platform}"
    with pytest.raises(SystemExit, match=re.escape(expected)):
        runpy.run_path(str(program), run_name="__main__")
