"""Benchmarks of kproto and its peers, as ratios within one run: ``python -m bench``."""
