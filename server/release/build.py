"""Build kproto as one file: a zip application for one version of Python, or an executable that needs nothing.

    python server/release/build.py pyz dist/kproto.pyz
    python server/release/build.py executable dist/kproto

Both are for the operating system and the processor of this machine. The first needs the version of Python that has
built it: crc32c, cryptography, google-re2 and xxhash are compiled. The second one contains Python; PyInstaller makes
it, in an environment of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYINSTALLER = "pyinstaller>=6.10"
NOT_INCLUDED = ("pyarrow", "numpy", "pandas", "tkinter", "unittest", "sqlite3", "test", "lib2to3", "pydoc")
"""Modules that the executable does not have."""
NOT_COPIED = ("spark", "client")
"""Packages of kproto that need an extra, which the executable does not have."""
COMPILED = ("cramjam", "crc32c", "re2", "xxhash", "yaml", "h11")
"""Modules that are imported when they are needed first, by names that PyInstaller does not see."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["pyz", "executable"])
    parser.add_argument("output", type=Path)
    parser.add_argument("--wheel", type=Path, help="a wheel of kproto; by default it is built")
    given = parser.parse_args()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wheel = given.wheel or build_wheel(Path(folder))
        build = build_pyz if given.kind == "pyz" else build_executable
        build(wheel, given.output, Path(folder))
    print(f"{given.output}: {given.output.stat().st_size / 1e6:.1f} MB")
    return 0


def run(*words: str | Path) -> None:
    subprocess.run([str(word) for word in words], check=True)


def build_wheel(folder: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("kproto-*.whl")
    return wheel


def build_pyz(wheel: Path, output: Path, folder: Path) -> None:
    """Write a zip application: ``pyz_main.py``, and all packages in ``site``."""
    site = folder / "site"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
    run(*pip, "--target", site, f"{wheel}[compression]")
    files = sorted(path for path in site.rglob("*") if path.is_file() and path.parent != site / "bin")
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(site)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    with output.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__main__.py", pyz_main(digest.hexdigest()[:16]))
            for path in files:
                archive.write(path, Path("site") / path.relative_to(site))
    output.chmod(output.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def pyz_main(build: str) -> str:
    """Return the source of the zip application's ``__main__.py``, for this Python on this platform."""
    platform = sysconfig.get_platform()
    shown = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {platform}"
    values = {"BUILD": build, "PYTHON": sys.version_info[:2], "PLATFORM": platform, "SHOWN": shown}
    source = (HERE / "pyz_main.py").read_text(encoding="utf-8")
    for name, value in values.items():
        source = source.replace(f'"{{{name}}}"', repr(value))
    return source


def build_executable(wheel: Path, output: Path, folder: Path) -> None:
    """Write an executable that contains Python and all packages."""
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[compression]", PYINSTALLER)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for name in NOT_COPIED:
        shutil.rmtree(packages / "kproto" / name)
    options = {
        "collect-submodules": ("kproto", "kproto_server"),
        "collect-data": ("kproto", "kproto_server"),
        "copy-metadata": ("kproto",),
        "hidden-import": COMPILED,
        "exclude-module": NOT_INCLUDED,
        "name": (output.name,),
        "distpath": (output.parent.resolve(),),
        "workpath": (folder / "work",),
        "specpath": (folder,),
        "log-level": ("ERROR",),
    }
    words = [f"--{option}={value}" for option, values in options.items() for value in values]
    run(python, "-m", "PyInstaller", "--onefile", "--noconfirm", *words, HERE / "executable_main.py")


if __name__ == "__main__":
    sys.exit(main())
