"""The table of packages in server/README.md names each package of the broker, in the order of the layers that
pyproject.toml states."""

from __future__ import annotations

import re
import tomllib

from tests.docs.texts import ROOT

PACKAGE = ROOT / "server" / "kproto_server"
ROW = re.compile(r"^\| `([\w/]+)(?:\.py)?` \|", re.M)


def rows() -> list[str]:
    """Return the packages and modules in the first column of the page's tables."""
    page = (ROOT / "server" / "README.md").read_text(encoding="utf-8")
    return ROW.findall(page[page.index("## The packages") : page.index("## What may import what")])


def ranks() -> dict[str, int]:
    """Return the layer of each package, the highest first; a package in several layers has the highest of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = [one["layers"] for one in contracts if one["name"].startswith("Layers of the broker")]
    found: dict[str, int] = {}
    for rank, layer in enumerate(layers):
        for module in re.findall(r"kproto_server\.(\w+)", layer):
            found.setdefault(module, rank)
    return found


def test_each_package_of_the_broker_has_a_row() -> None:
    packages = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("**/__init__.py")} - {"."}
    modules = {path.stem for path in PACKAGE.glob("[!_]*.py")}
    assert sorted(rows()) == sorted(packages | modules)


def test_the_packages_are_in_the_order_of_the_layers() -> None:
    rank_of = ranks()
    in_order = [name for name in rows() if "/" not in name]
    assert in_order == sorted(in_order, key=lambda name: rank_of[name])
