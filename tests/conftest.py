"""Hypothesis profiles, chosen by the environment variable KPROTO_HYPOTHESIS.

The default runs the same examples each time, ``exhaustive`` many new ones, ``few`` a handful of them: enough to
measure coverage and to detect mutants, for which each test runs many times or slowly.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "derandomised",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "exhaustive",
    settings.get_profile("derandomised"),
    derandomize=False,
    max_examples=5000,
    print_blob=True,
)
settings.register_profile("few", settings.get_profile("derandomised"), max_examples=16)
settings.load_profile(os.environ.get("KPROTO_HYPOTHESIS", "derandomised"))
