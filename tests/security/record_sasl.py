"""Record the transcripts of the SASL scripts: `python -m tests.security.record_sasl RELEASE HOST:PORT`.

The listener has SASL_PLAINTEXT with PLAIN and SCRAM-SHA-256, and a user alice with the password "secret" in both.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.security.sasl_scripts import SCRIPTS, transcript

FOLDER = Path(__file__).parents[2] / "fixtures" / "sasl"


def main() -> None:
    release, address = sys.argv[1:]
    found = {name: transcript(address, steps) for name, steps in SCRIPTS.items()}
    (FOLDER / f"{release}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
