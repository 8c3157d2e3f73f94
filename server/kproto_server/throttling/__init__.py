"""Quotas in effect: clients that exceed the quota of their group are throttled."""
