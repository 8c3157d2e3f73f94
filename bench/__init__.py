"""Measures kproto beside its peers, always as ratios within one run: ``python -m bench``."""
