"""Build the wheel and check its content: the two packages, their types, and the codecs that the declarations generate.

CI runs ``python -m tests.check_wheel``. The exit code is 1 and one line names the first problem, if there is one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

TOP_LEVEL = {"kproto", "kproto_server"}
SIZE_MAX_BYTES = 4 * 1024 * 1024
"""The largest size of the wheel: a broker for tests is quick to install."""

SERVE_WITHOUT_CONSTRUCT = """
import sys
from kproto_server import Broker
from kproto.client_connection import ClientConnection
import kproto, kproto.registry
for key in (3, 8, 9, 10, 18):
    for version in kproto.registry.versions(key):
        kproto.registry.codec(key, version)
assert "construct" not in sys.modules, "serving imports construct"
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(__file__).resolve().parent.parent
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(root)]
        subprocess.run(build, check=True)
        (wheel,) = Path(folder).glob("kproto-*.whl")
        problem = _problem(wheel, Path(folder, "site"))
    if problem:
        print(f"the wheel is wrong: {problem}", file=sys.stderr)
        return 1
    print(f"{wheel.name}: no problem found")
    return 0


def _problem(wheel: Path, site: Path) -> str | None:
    if wheel.stat().st_size > SIZE_MAX_BYTES:
        return f"it has {wheel.stat().st_size} bytes, more than {SIZE_MAX_BYTES}"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(site)
    top = {name.split("/")[0] for name in names}
    info = {name for name in top if name.endswith(".dist-info")}
    if top - info != TOP_LEVEL:
        return f"top-level names are {sorted(top - info)}, not {sorted(TOP_LEVEL)}"
    if not any(name.endswith("/py.typed") for name in names):
        return "py.typed is missing"
    if "kproto_server/control/page/index.html" not in names:
        return "the page of the control port is missing"
    return _stale_codec(site) or _imports_construct(site)


def _stale_codec(site: Path) -> str | None:
    """Return the first generated module that differs from what the generator makes of the declarations."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from kproto.generate.shipping import generated_sources  # the build's own function, from the tree

    for name, source in generated_sources().items():
        shipped = site / "kproto" / "_generated" / name
        if not shipped.is_file():
            return f"kproto/_generated/{name} is missing"
        if shipped.read_text() != source:
            return f"kproto/_generated/{name} is not what the declarations say"
    return None


def _imports_construct(site: Path) -> str | None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(site)!r}){SERVE_WITHOUT_CONSTRUCT}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=site,
    )
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())
