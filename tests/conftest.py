"""Hypothesis profiles: the same examples in every run by default, many new ones with KPROTO_HYPOTHESIS=exhaustive."""

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
settings.load_profile(os.environ.get("KPROTO_HYPOTHESIS", "derandomised"))
