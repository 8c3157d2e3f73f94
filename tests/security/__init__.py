"""Secured listeners."""
