"""Share groups: reset offsets, consume, describe, delete."""

from tests.clients.tool_steps import records, run, topic
from tests.clients.tools import ALL_GROUPS, CONSOLE_SHARE_CONSUMER, SHARE_GROUPS

STEPS = (
    topic("of-share", 2),
    records("of-share", 0, 10),
    records("of-share", 1, 5),
    run(SHARE_GROUPS, "--describe --group unknown", "not found"),
    run(SHARE_GROUPS, "--reset-offsets --group shared --topic of-share --to-earliest --execute", "of-share"),
    run(SHARE_GROUPS, "--describe --group shared", "of-share"),
    run(
        CONSOLE_SHARE_CONSUMER,
        "--topic of-share --group shared --max-messages 15 --timeout-ms 15000",
        "Processed a total of 15 messages",
        unordered=True,
    ),
    run(SHARE_GROUPS, "--describe --group shared --offsets --verbose", "of-share"),
    run(SHARE_GROUPS, "--describe --group shared --state --verbose", "Empty"),
    run(SHARE_GROUPS, "--describe --all-groups", "of-share"),
    run(SHARE_GROUPS, "--list --state", "Empty"),
    run(SHARE_GROUPS, "--reset-offsets --group shared --topic of-share:1 --to-latest --dry-run", "of-share"),
    run(
        SHARE_GROUPS,
        "--reset-offsets --group shared --topic of-share --to-datetime 2023-11-14T22:13:25.000 --execute",
        "of-share",
    ),
    run(SHARE_GROUPS, "--describe --group shared", "of-share"),
    run(SHARE_GROUPS, "--describe --group shared --members", "no active members"),
    run(SHARE_GROUPS, "--describe --group shared --state", "Empty"),
    run(ALL_GROUPS, "--list --share", "shared"),
    run(SHARE_GROUPS, "--delete-offsets --group shared --topic of-share --topic not-there", "of-share"),
    run(SHARE_GROUPS, "--describe --group shared", "shared"),
    run(SHARE_GROUPS, "--delete --group shared --group unknown", "shared"),
    run(SHARE_GROUPS, "--list"),
    run(SHARE_GROUPS, "", "Command must include exactly one action"),
)
