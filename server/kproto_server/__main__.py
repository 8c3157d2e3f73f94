"""``python -m kproto_server`` is ``kproto``."""

import sys

from kproto_server.cli import main

sys.exit(main())
