"""AclCommand: what it adds, lists and removes, with each kind of resource and pattern, hosts, and its two roles."""

from tests.clients.tool_steps import query, run
from tests.clients.tools import ACLS

ADDED = "Adding ACLs for resource"
HAS_BOB = "(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)"
ALICE, BOB = "--allow-principal User:alice", "--allow-principal User:bob"

STEPS = (
    query(ACLS, "--list"),
    run(ACLS, f"--add {BOB} --operation Read --topic orders", ADDED, HAS_BOB, unordered=True),
    run(ACLS, f"--add {BOB} --operation Read --topic orders", "already exists", unordered=True),
    run(
        ACLS,
        f"--add {BOB} --operation Read --operation Write --topic ord --resource-pattern-type prefixed",
        "patternType=PREFIXED",
        unordered=True,
    ),
    run(ACLS, f"--add {BOB} --operation All --topic '*'", "name=*", unordered=True),
    run(
        ACLS,
        f"--add {ALICE} {BOB} --deny-principal User:mallory --allow-host 10.0.0.1 --allow-host ::1 "
        "--deny-host 10.0.0.2 --operation Read --operation DescribeConfigs --topic orders --topic other",
        "host=10.0.0.2, operation=READ, permissionType=DENY",
        unordered=True,
    ),
    run(ACLS, f"--add {ALICE} --producer --topic orders", "operation=CREATE", unordered=True),
    run(
        ACLS, f"--add {ALICE} --producer --topic t --transactional-id billing --idempotent", "TRANSACTIONAL_ID",
        "IDEMPOTENT_WRITE", unordered=True,
    ),
    run(ACLS, f"--add {ALICE} --consumer --topic orders --group g", "resourceType=GROUP", unordered=True),
    run(
        ACLS, f"--add {ALICE} --consumer --topic orders --group g- --resource-pattern-type prefixed",
        "patternType=PREFIXED", unordered=True,
    ),
    run(ACLS, f"--add {ALICE} --operation Alter --operation Describe --cluster", "kafka-cluster", unordered=True),
    run(ACLS, f"--add {ALICE} --operation Describe --delegation-token token", "DELEGATION_TOKEN", unordered=True),
    run(ACLS, f"--add {ALICE} --operation CreateTokens --user-principal User:bob", "resourceType=USER", unordered=True),
    query(ACLS, "--list", HAS_BOB, "User:alice", unordered=True),
    query(ACLS, "--list --topic orders", HAS_BOB, unordered=True),
    query(ACLS, "--list --topic orders --resource-pattern-type match", "PREFIXED", "name=*", unordered=True),
    query(ACLS, "--list --topic orders --resource-pattern-type any", HAS_BOB, unordered=True),
    query(ACLS, "--list --topic ord --resource-pattern-type prefixed", "PREFIXED", unordered=True),
    query(ACLS, "--list --principal User:mallory", "User:mallory", unordered=True),
    query(ACLS, "--list --principal User:alice --principal User:bob --group g", "User:alice", unordered=True),
    query(ACLS, "--list --cluster", "kafka-cluster", unordered=True),
    query(ACLS, "--list --topic absent"),
    run(
        ACLS, f"--remove --force {BOB} --operation Read --operation Write --topic ord --resource-pattern-type prefixed",
        unordered=True,
    ),
    run(ACLS, f"--remove {BOB} --operation All --topic '*'", "Are you sure", stdin="n\n", unordered=True),
    run(ACLS, f"--remove {BOB} --operation All --topic '*'", "Are you sure", stdin="y\n", unordered=True),
    run(ACLS, f"--remove --force {ALICE} --consumer --topic orders --group g", unordered=True),
    run(ACLS, "--remove --force --topic absent"),
    query(ACLS, "--list", HAS_BOB, unordered=True),
    run(ACLS, "--remove --force --topic orders --resource-pattern-type match", unordered=True),
    run(ACLS, "--remove --force --cluster", unordered=True),
    query(ACLS, "--list", "name=other", unordered=True),
)  # fmt: skip
