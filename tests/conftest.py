"""Hypothesis profiles, chosen by the environment variable KPROTO_HYPOTHESIS.

The default, ``derandomized``, runs the same examples each time. ``exhaustive`` runs many new ones. ``few`` runs a
handful: enough to measure coverage and to detect mutants, where each test runs slowly or many times.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "derandomized",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "exhaustive", settings.get_profile("derandomized"), derandomize=False, max_examples=5000, print_blob=True
)
settings.register_profile("few", settings.get_profile("derandomized"), max_examples=16)
settings.load_profile(os.environ.get("KPROTO_HYPOTHESIS", "derandomized"))
