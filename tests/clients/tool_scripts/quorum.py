"""Brokers and controllers that leave or join the cluster: unknown ones, and voters that the settings name."""

from tests.clients.tool_steps import file, query, run
from tests.clients.tools import CLUSTER, QUORUM

DIRECTORY_ID = "AAAAAAAAAAEAAAAAAAAAAQ"
REMOVED = f"--bootstrap-server ADDRESS remove-controller --controller-directory-id {DIRECTORY_ID} --controller-id"
ADDED = "--bootstrap-server ADDRESS --command-config FOLDER/controller.properties add-controller"
CONTROLLER = """
process.roles=controller
node.id=77
listeners=CONTROLLER://localhost:19999
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:19999
metadata.log.dir=FOLDER
"""

STEPS = (
    run(CLUSTER, "unregister --bootstrap-server ADDRESS --id 77", "77"),
    run(CLUSTER, "unregister --bootstrap-server ADDRESS --id -5", "-5"),
    run(CLUSTER, "unregister-controller --bootstrap-server ADDRESS --id 77", "77"),
    run(CLUSTER, "unregister-controller --bootstrap-server ADDRESS --id 1", "1"),
    query(CLUSTER, "list-endpoints --bootstrap-server ADDRESS --include-fenced-brokers", "unfenced", ignored=("PORT",)),
    run(QUORUM, f"{REMOVED} 1", "the kraft.version feature is 0"),
    run(QUORUM, f"{REMOVED} -3", "-3"),
    file("controller.properties", CONTROLLER),
    file("meta.properties", f"cluster.id=c\nversion=1\nnode.id=77\ndirectory.id={DIRECTORY_ID}\n"),
    run(QUORUM, ADDED, "the kraft.version feature is 0"),
)
