"""Resets of a group's offsets with each option, on topics with records."""

from tests.clients.tool_steps import Action, committed, file, query, records, run, topic
from tests.clients.tools import GROUPS, STREAMS_RESETTER

RESET = "--reset-offsets --group resetting --topic resets"
ROW = "resetting       resets          {}          {}"
EXPECTED_OFFSETS = {
    "--to-earliest": (0, 0),
    "--to-latest": (10, 5),
    "--to-current": (5, 2),
    "--to-offset 4": (4, 4),
    "--to-offset 8": (8, 5),
    "--to-offset -1": (0, 0),
    "--shift-by 2": (7, 4),
    "--shift-by -3": (2, 0),
    "--shift-by 200": (10, 5),
    "--by-duration PT1H": (10, 5),
    "--by-duration P3650D": (0, 0),
    "--to-datetime 2023-11-14T22:13:23.500Z": (4, 4),
    "--to-datetime 2023-11-14T22:13:23.500": (4, 4),
    "--to-datetime 2023-11-14T22:13:25.000Z": (5, 5),
    "--to-datetime 2033-11-14T22:13:25.500+01:00": (10, 5),
}
"""The offsets after each reset, from offset 5 of 10 records in partition 0 and 2 of 5 in partition 1."""

STEPS: tuple[Action, ...] = (
    topic("resets", 2),
    records("resets", 0, 10),
    records("resets", 1, 5),
    committed("resetting", "resets", {0: 5, 1: 2}),
    *(
        query(GROUPS, f"{RESET} {to} --dry-run", *(ROW.format(p, offset) for p, offset in enumerate(offsets)))
        for to, offsets in EXPECTED_OFFSETS.items()
    ),
    query(GROUPS, f"{RESET} --to-earliest", "WARN: No action will be performed as the --execute option is missing."),
    query(GROUPS, f"{RESET} --to-offset 4 --dry-run --export", "resets,0,4\nresets,1,4"),
    query(GROUPS, "--reset-offsets --group resetting --all-topics --shift-by 1 --export --dry-run", "resets,0,6"),
    run(GROUPS, f"{RESET} --dry-run", "requires one of the following scenarios"),
    run(GROUPS, f"{RESET} --to-earliest --to-latest", "can't be used with"),
    run(GROUPS, f"{RESET} --to-datetime soon", "It does not contain a 'T'"),
    run(GROUPS, f"{RESET} --by-duration long", "Text cannot be parsed to a Duration"),
    run(
        GROUPS, "--reset-offsets --group resetting --to-earliest --execute", "One of the reset scopes should be defined"
    ),
    run(GROUPS, f"{RESET}:1 --shift-by 2 --execute", ROW.format(1, 4)),
    run(GROUPS, f"{RESET}:0,1 --to-latest --execute", ROW.format(0, 10), ROW.format(1, 5)),
    query(GROUPS, "--describe --group resetting", "resetting       resets          0          10              10"),
    run(GROUPS, f"{RESET} --to-datetime 2023-11-14T22:13:21.500Z --execute", ROW.format(0, 2), ROW.format(1, 2)),
    query(GROUPS, "--describe --group resetting", "resetting       resets          0          2               10"),
    run(GROUPS, "--reset-offsets --group new-group --topic resets --to-latest --execute", "new-group"),
    query(GROUPS, "--describe --group new-group", "has no active members"),
    run(GROUPS, "--reset-offsets --group resetting --topic not-there --to-latest --execute", "does not host this"),
    run(GROUPS, f"{RESET}:7 --to-latest --execute", "resets-7"),
)

FROM_FILES = (
    topic("planned", 2),
    records("planned", 0, 10),
    committed("plans-1", "planned", {0: 5, 1: 0}),
    committed("plans-2", "planned", {0: 6}),
    file("one.csv", "planned,0,3\nplanned,1,0\n"),
    file("two.csv", '"plans-1","planned",0,2\n"plans-2","planned",0,90\n'),
    file("bad.csv", "no plan\n"),
    query(GROUPS, "--reset-offsets --group plans-1 --from-file FOLDER/one.csv --dry-run", "plans-1"),
    run(GROUPS, "--reset-offsets --group plans-1 --from-file FOLDER/one.csv --execute", "plans-1"),
    query(GROUPS, "--describe --group plans-1", "planned         0          3 "),
    query(
        GROUPS,
        "--reset-offsets --group plans-1 --group plans-2 --topic planned:0 --shift-by 1 --export --dry-run",
        "plans-1,planned,0,4",
        unordered=True,
    ),
    run(
        GROUPS,
        "--reset-offsets --group plans-1 --group plans-2 --from-file FOLDER/two.csv --execute",
        "WARN New offset (90) is higher than latest offset for topic partition planned-0. Value will be set to 10",
        unordered=True,
    ),
    query(GROUPS, "--describe --group plans-2", "planned         0          10 "),
    run(GROUPS, "--reset-offsets --group plans-1 --from-file FOLDER/bad.csv --execute", "no plan"),
    run(GROUPS, "--reset-offsets --group plans-1 --from-file FOLDER/absent.csv --execute", "absent.csv"),
    run(STREAMS_RESETTER, "--application-id plans-1 --input-topics planned --to-offset 7", "Partition: 0 Offset: 7"),
    run(STREAMS_RESETTER, "--application-id plans-1 --input-topics planned --shift-by -2", "Partition: 0 Offset: 5"),
    query(GROUPS, "--describe --group plans-1", "planned         0          5 "),
)
