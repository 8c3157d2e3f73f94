"""The dependencies of the drivers are pinned by digest, without the address of a registry."""

import json

from tests.clients.scenarios.built import DRIVERS


def test_node_modules_are_locked_to_a_digest_without_an_address() -> None:
    lock = json.loads((DRIVERS / "node/package-lock.json").read_text())
    dependencies = json.loads((DRIVERS / "node/package.json").read_text())["dependencies"]
    modules = {name: module for name, module in lock["packages"].items() if name}
    assert (
        dependencies.items()
        <= {name.removeprefix("node_modules/"): m["version"] for name, m in modules.items()}.items()
    )
    assert all(module["integrity"].startswith("sha512-") for module in modules.values())
    assert [name for name, module in modules.items() if "resolved" in module] == []
