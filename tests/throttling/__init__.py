"""Quotas in effect."""
