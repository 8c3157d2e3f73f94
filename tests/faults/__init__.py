"""Fault rules: what they match, what they do to requests and responses, and what real clients make of it."""
