"""The requests of administrators, script by script: each runs against a new real broker, and against kproto."""

from __future__ import annotations

from collections.abc import Callable

from tests.features.administrator import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, Administrator

Script = Callable[[Administrator], None]

SCRIPTS: dict[str, Script] = {}

METADATA = "metadata.version"


def script(run: Script) -> Script:
    SCRIPTS[run.__name__] = run
    return run


@script
def wrong_updates(administrator: Administrator) -> None:
    update = administrator.update
    supported, finalized = administrator.describe()
    update()
    for name in dict.fromkeys(["", "nowhere", "test.feature.version", "group.version", *sorted(supported)]):
        least, greatest = supported.get(name, (0, 0))
        level = finalized.get(name, 0)
        for wanted in sorted({-1, least - 1, level - 1, level, level + 1, greatest + 1}):
            for upgrade_type in (UPGRADE, SAFE_DOWNGRADE) if administrator.version >= 1 else (UPGRADE,):
                update((name, wanted), upgrade_type=upgrade_type, validate_only=True)
        if administrator.version == 0:
            update((name, least), allow_downgrade=True)
        else:
            for upgrade_type in (0, 4):
                update((name, level), upgrade_type=upgrade_type, validate_only=True)
            update((name, level - 1), upgrade_type=UNSAFE_DOWNGRADE, validate_only=True)
    administrator.describe()


@script
def features_go_down_and_up(administrator: Administrator) -> None:
    supported, finalized = administrator.describe()
    for name in sorted(supported):
        least, greatest = supported[name]
        if name == METADATA:
            continue
        for level in range(finalized.get(name, 0) - 1, least - 1, -1):
            administrator.update((name, level), upgrade_type=SAFE_DOWNGRADE)
        administrator.update((name, 0), upgrade_type=SAFE_DOWNGRADE)
        for level in range(least, greatest + 1):
            administrator.update((name, level))
        administrator.update((name, 0), upgrade_type=UNSAFE_DOWNGRADE)
        administrator.update((name, greatest))


@script
def several_updates(administrator: Administrator) -> None:
    _, finalized = administrator.describe()
    if len(finalized) < 3:
        return
    one, other = sorted(name for name in finalized if name != METADATA)[:2]
    administrator.update((one, 0), (other, 0), upgrade_type=SAFE_DOWNGRADE)
    administrator.update((one, 1), (other, 0), upgrade_type=UPGRADE)
    administrator.update((one, 0), (other, 99), upgrade_type=SAFE_DOWNGRADE)
    administrator.update((one, 1), ("nowhere", 1))
    administrator.update((one, 1), (one, 1), upgrade_type=UPGRADE)
    administrator.update((one, 0), (other, 0), upgrade_type=SAFE_DOWNGRADE, validate_only=True)
    administrator.describe()


@script
def metadata_goes_down(administrator: Administrator) -> None:
    supported, finalized = administrator.describe()
    if METADATA not in finalized:
        return
    least, greatest = supported[METADATA]
    for level in range(greatest, least - 1, -1):
        administrator.update((METADATA, level), upgrade_type=SAFE_DOWNGRADE, validate_only=True)
    administrator.update((METADATA, least), upgrade_type=UNSAFE_DOWNGRADE)
    for level in (greatest - 1, greatest - 2):
        administrator.update((METADATA, level), upgrade_type=SAFE_DOWNGRADE)
    for name in sorted(supported):
        administrator.update((name, supported[name][1]))
