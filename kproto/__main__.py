"""``python -m kproto`` is the command ``kproto``."""

import runpy

runpy.run_module("kproto_server", run_name="__main__")  # by name: the library imports nothing of the broker
