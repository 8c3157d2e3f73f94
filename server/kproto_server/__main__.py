"""``python -m kproto_server`` is ``kproto``."""

import sys

from kproto_server.commandline.cli import main

sys.exit(main())
