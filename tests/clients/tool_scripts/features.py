"""The features of the cluster: kafka-features.sh. The last steps finalize the levels of a new cluster again."""

from tests.clients.tool_steps import query, run
from tests.clients.tools import FEATURES

TOOL = "--bootstrap-server ADDRESS"

STEPS = (
    query(FEATURES, f"{TOOL} describe", "Feature: metadata.version"),
    query(FEATURES, f"{TOOL} version-mapping", "metadata.version"),
    run(FEATURES, f"{TOOL} upgrade --feature transaction.version=9", "Could not upgrade"),
    run(FEATURES, f"{TOOL} upgrade --feature nothing=1", "Could not upgrade"),
    run(FEATURES, f"{TOOL} upgrade --feature transaction.version=1", "Could not upgrade"),
    run(FEATURES, f"{TOOL} upgrade --feature transaction.version=two", "unable to parse"),
    run(FEATURES, f"{TOOL} upgrade", "at least one feature"),
    run(FEATURES, f"{TOOL} downgrade --feature transaction.version=1 --dry-run", "can be downgraded to 1"),
    run(FEATURES, f"{TOOL} downgrade --feature transaction.version=1", "was downgraded to 1"),
    query(FEATURES, f"{TOOL} describe", "Feature: transaction.version"),
    run(FEATURES, f"{TOOL} downgrade --feature transaction.version=2", "newer version"),
    run(FEATURES, f"{TOOL} downgrade --unsafe --feature transaction.version=0", "was downgraded to 0"),
    run(FEATURES, f"{TOOL} disable --feature transaction.version --feature group.version", "disabled"),
    query(FEATURES, f"{TOOL} describe", "Feature: transaction.version"),
    run(FEATURES, f"{TOOL} downgrade --metadata 3.9", "metadata.version"),
    run(FEATURES, f"{TOOL} downgrade --unsafe --metadata 4.0", "metadata.version"),
    run(FEATURES, f"{TOOL} upgrade --metadata 9.9", "Unknown metadata.version"),
    run(FEATURES, f"{TOOL} upgrade --release-version 4.0 --dry-run", "operation(s) failed"),
    run(FEATURES, f"{TOOL} upgrade --feature transaction.version=2 --feature group.version=1", "was upgraded"),
    query(FEATURES, f"{TOOL} describe", "Feature: transaction.version"),
)
