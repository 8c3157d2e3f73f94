"""``python -m kproto.spark``, and the file to give to spark-submit."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    here: str = str(Path(__file__).parent)
    if sys.path[0] == here:  # spark-submit runs this file by its path; modules of this package must not shadow others
        del sys.path[0]
    from kproto.spark.cli import main

    sys.exit(main())
