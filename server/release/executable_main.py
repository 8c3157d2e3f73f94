"""The command ``kproto``, as the executable runs it.

The executable is two processes: the first one unpacks and starts the second, which runs this, and forwards signals to
it.
"""

import os
import signal
import sys
import threading
import time

from kproto_server.commandline.cli import main
from kproto_server.process_tree import WATCH

PARENT_CHECK_S = 0.2


def end_with_first_process() -> None:
    """End as by SIGTERM when the first process was killed."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_S)
    os.kill(os.getpid(), signal.SIGTERM)


if WATCH not in sys.argv[1:2]:
    threading.Thread(target=end_with_first_process, daemon=True).start()
sys.exit(main())
