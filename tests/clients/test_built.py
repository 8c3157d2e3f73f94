"""What the drivers are built from is pinned, and names no registry: each machine has its own."""

import json

from tests.clients.scenarios.built import DRIVERS


def test_the_modules_of_node_are_locked_to_a_digest_and_to_no_address() -> None:
    lock = json.loads((DRIVERS / "node/package-lock.json").read_text())
    wanted = json.loads((DRIVERS / "node/package.json").read_text())["dependencies"]
    modules = {name: facts for name, facts in lock["packages"].items() if name}
    assert wanted.items() <= {name.removeprefix("node_modules/"): m["version"] for name, m in modules.items()}.items()
    assert all(module["integrity"].startswith("sha512-") for module in modules.values())
    assert [name for name, module in modules.items() if "resolved" in module] == []
