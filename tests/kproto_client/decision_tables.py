"""Tables A3 and A4 of the client proposals, as the specification prints them; S = 100 and E = 500.

The tests of the decisions and the tests with real clients use them.
"""

from typing import Final

START: Final = 100
END: Final = 500
BELOW: Final = 40
ABOVE: Final = 900

ERROR: Final = None
"""NoOffsetForPartition or OffsetOutOfRange."""
NO_INITIAL: Final = ("none", "latest_on_start", "earliest_on_start", "safe_latest", "latest", "earliest")
RESETS: Final = ("latest", "earliest", "none")

WITHOUT_OFFSET: Final[dict[tuple[str, str], tuple[int | None, int | None]]] = {
    # on.no.initial.offset, auto.offset.reset: at group start, expanded partition
    ("none", "latest"): (END, END),
    ("none", "earliest"): (START, START),
    ("none", "none"): (ERROR, ERROR),
    ("latest_on_start", "latest"): (END, END),
    ("latest_on_start", "earliest"): (END, START),
    ("latest_on_start", "none"): (END, ERROR),
    ("earliest_on_start", "latest"): (START, END),
    ("earliest_on_start", "earliest"): (START, START),
    ("earliest_on_start", "none"): (START, ERROR),
    **{("latest", reset): (END, END) for reset in RESETS},
    **{("earliest", reset): (START, START) for reset in RESETS},
}
"""Without safe_latest, which at group start compares the first record's timestamp T1 with the group's start time T0."""

OUT_OF_RANGE: Final[dict[tuple[str, str], tuple[int | None, int | None]]] = {
    # on.invalid.offset, auto.offset.reset: position 40, position 900
    ("none", "latest"): (END, END),
    ("none", "earliest"): (START, START),
    ("none", "none"): (ERROR, ERROR),
    **{("nearest", reset): (START, END) for reset in RESETS},
}
